import type { UpstreamForm } from '../../model/upstream-form.ts';

export type TextName = {
  [Name in keyof UpstreamForm]: UpstreamForm[Name] extends string ? Name : never;
}[keyof UpstreamForm];

export interface FieldText {
  readonly name: TextName;
  /** Path in the document, if it differs from the name. */
  readonly path?: string;
  readonly label: string;
  /** Value that applies while the field is empty, or an example. */
  readonly placeholder?: string;
  readonly isRequired?: boolean;
  readonly isLong?: boolean;
  /** Allowed values with their labels. */
  readonly options?: readonly (readonly [string, string])[];
  /** Suggested values. Others can be typed. */
  readonly choices?: readonly string[];
}

interface FormFieldProps {
  readonly text: FieldText;
  readonly help: string;
  readonly value: string;
  readonly errors: readonly { readonly path: string; readonly message: string }[];
  readonly change: (value: string) => void;
}

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
