import { useState } from 'preact/hooks';
import { plural } from '../../format.ts';
import { AffinityField, MembersField } from '../../form/members-field.tsx';
import { SchemaField, type FormState } from '../../form/schema-field.tsx';
import { isSame, valueAt } from '../../model/document.ts';
import { messagesAt } from '../../model/field-errors.ts';
import { isNested, type FieldSection } from '../../model/field-words.ts';
import type { SchemaField as FieldOfSchema } from '../../model/schema-fields.ts';
import { SuggestedLimits } from './suggested-limits.tsx';

/** Sections that start expanded, because nearly every group sets them. */
const OPEN = ['match', 'limits'];

/** A section of the form. It is expanded if a field in it is set or has an error. */
export function Section(props: {
  readonly section: FieldSection;
  readonly fields: ReadonlyMap<string, FieldOfSchema>;
  readonly form: FormState;
  /** Shows only fields whose words contain this text. */
  readonly search: string;
}) {
  const { section, fields, form, search } = props;
  const shown = Object.entries(section.fields).flatMap(([path, label]) => {
    const field = fields.get(path);
    const text = `${section.title} ${label} ${path} ${field?.help}`.toLowerCase();
    return field === undefined || !text.includes(search) ? [] : [{ path, label, field }];
  });
  const paths = Object.keys(section.fields);
  const set = paths.filter((path) => {
    const fallback = fields.get(path)?.fallback;
    return !isSame(valueAt(form.draft, path) ?? fallback, fallback);
  });
  const wrong = paths.filter((path) => messagesAt(form.errors, path).length > 0);
  const [chosen, setChosen] = useState(() => OPEN.includes(section.id) || set.length > 0);
  const isOpen = chosen || wrong.length > 0 || search !== '';
  if (shown.length === 0) return null;
  return (
    <details
      class="section"
      open={isOpen}
      onToggle={(event) => {
        if (search === '') setChosen(event.currentTarget.open);
      }}
    >
      <summary>
        <h2>{section.title}</h2>
        {wrong.length > 0 && <span class="count bad">{plural(wrong.length, 'error')}</span>}
        {set.length > 0 && <span class="count">{set.length} set</span>}
      </summary>
      <p class="help">{section.help}</p>
      {section.id === 'limits' && <SuggestedLimits form={form} />}
      <div class="fields">
        {shown.map(({ path, label, field }) => {
          if (!isNested(path)) {
            return <SchemaField key={path} field={field} label={label} form={form} />;
          }
          const Nested = path === 'members' ? MembersField : AffinityField;
          return <Nested key={path} form={form} />;
        })}
      </div>
    </details>
  );
}
