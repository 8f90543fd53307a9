import { useState } from 'preact/hooks';
import { filterProblem, NO_FILTER, type AuditFilter } from '../../model/audit.ts';
import { Field } from '../../ui/field.tsx';

const FIELDS = [
  { name: 'actor', label: 'Actor', type: 'text', placeholder: 'admin-token' },
  {
    name: 'action',
    label: 'Action begins with',
    type: 'text',
    placeholder: 'group openai-shared:',
  },
  { name: 'since', label: 'From', type: 'datetime-local', placeholder: '' },
  { name: 'until', label: 'Until', type: 'datetime-local', placeholder: '' },
] as const;

export function AuditFilterForm(props: {
  readonly initial: AuditFilter;
  readonly onFilter: (filter: AuditFilter) => void;
}) {
  const [filter, setFilter] = useState(props.initial);
  const problem = filterProblem(filter);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (problem === null) props.onFilter(filter);
  };
  const clear = (): void => {
    setFilter(NO_FILTER);
    props.onFilter(NO_FILTER);
  };
  return (
    <form class="audit-filter" onSubmit={submit} role="search" aria-label="Audit log">
      {FIELDS.map(({ name, label, type, placeholder }) => (
        <Field
          key={name}
          id={`audit-${name}`}
          label={label}
          errors={name === 'until' && problem !== null ? [problem] : []}
        >
          {(attributes) => {
            const own = {
              ...attributes,
              value: filter[name],
              onInput: ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) =>
                setFilter({ ...filter, [name]: currentTarget.value }),
            };
            if (type === 'datetime-local') return <input {...own} type={type} />;
            return <input {...own} type="text" placeholder={placeholder} spellcheck={false} />;
          }}
        </Field>
      ))}
      <div class="actions">
        <button type="submit">Filter</button>
        <button type="button" class="quiet" onClick={clear}>
          Clear
        </button>
      </div>
    </form>
  );
}
