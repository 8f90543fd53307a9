import type { UpstreamForm } from '../../model/upstream-form.ts';

/** The fields that are written rather than ticked. */
export type TextName = {
  [Name in keyof UpstreamForm]: UpstreamForm[Name] extends string ? Name : never;
}[keyof UpstreamForm];

/** Words of a field. */
export interface FieldText {
  readonly name: TextName;
  /** Where the document has it, if not by its name. */
  readonly path?: string;
  readonly label: string;
  /** Value that holds while it is empty, or an example. */
  readonly placeholder?: string;
  readonly isRequired?: boolean;
  /** Several lines. */
  readonly isLong?: boolean;
  /** Values to choose from, with their words. */
  readonly options?: readonly (readonly [string, string])[];
  /** Values that may be chosen in place of a typed one. */
  readonly choices?: readonly string[];
}

interface FormFieldProps {
  readonly text: FieldText;
  /** Description of the field. */
  readonly help: string;
  readonly value: string;
  readonly errors: readonly { readonly path: string; readonly message: string }[];
  readonly change: (value: string) => void;
}

/** One field with its label, its help and its error. */
export function FormField({ text, help, value, errors, change }: FormFieldProps) {
  const { name, label, options, choices, placeholder = '', isLong = false } = text;
  const id = `upstream-${name}`;
  const own = text.path ?? name;
  const wrong = errors.find(({ path }) => path.split(/[.[]/)[0] === own);
  const shared = {
    id,
    value,
    'aria-invalid': wrong !== undefined,
    'aria-describedby': `${id}-help`,
    onInput: (event: InputEvent & { readonly currentTarget: { readonly value: string } }) =>
      change(event.currentTarget.value),
  };
  return (
    <div class="labelled">
      <label for={id}>{label}</label>
      {options !== undefined && (
        <select {...shared}>
          {options.map(([option, words]) => (
            <option value={option}>{words}</option>
          ))}
        </select>
      )}
      {options === undefined && isLong && (
        <textarea {...shared} rows={2} placeholder={placeholder} spellcheck={false} />
      )}
      {options === undefined && !isLong && (
        <input
          {...shared}
          placeholder={placeholder}
          required={text.isRequired ?? false}
          spellcheck={false}
          list={choices === undefined ? undefined : `${id}-choices`}
          autocomplete="off"
        />
      )}
      {choices !== undefined && (
        <datalist id={`${id}-choices`}>
          {choices.map((choice) => (
            <option value={choice} />
          ))}
        </datalist>
      )}
      <p id={`${id}-help`} class="help">
        {wrong !== undefined && <strong class="wrong">{wrong.message}. </strong>}
        {isLong ? `${help} One per line.` : help}
      </p>
    </div>
  );
}
