import { Field } from '../../ui/field.tsx';

export function TextField(props: {
  readonly id: string;
  readonly label: string;
  readonly help: string;
  readonly value: string;
  readonly errors?: readonly string[];
  readonly onValue: (value: string) => void;
}) {
  const { id, label, help, errors = [] } = props;
  return (
    <Field id={id} label={label} help={help} errors={errors}>
      {(attributes) => (
        <input
          {...attributes}
          value={props.value}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => props.onValue(event.currentTarget.value.trim())}
        />
      )}
    </Field>
  );
}
