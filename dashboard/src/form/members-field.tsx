import { memberIdOf, type MemberConfig } from '../../../src/contract/config/members.ts';
import { withValue, type EditedDocument } from '../model/document.ts';
import { elsewhere } from '../model/field-errors.ts';
import {
  AFFINITY_FIELDS,
  affinityFrom,
  affinityIn,
  errorsWithin,
  FIELDS_OF_AFFINITY,
  FIELDS_OF_MEMBER,
  MEMBER_FIELDS,
  membersIn,
  moved,
  MORE_MEMBER_FIELDS,
  newMember,
} from '../model/member-fields.ts';
import type { SchemaField as FieldOfSchema } from '../model/schema-fields.ts';
import { SchemaField, type FormState } from './schema-field.tsx';
import './members-field.css';

/** Editor of the members of a group: add, edit, remove, reorder. */
export function MembersField({ form }: { readonly form: FormState }) {
  const members = membersIn(form.draft['members']);
  const before = membersIn(form.base['members']);
  const upstreams = form.suggestions?.['members.upstream'] ?? [];
  const change = (next: readonly EditedDocument[]): void => form.change('members', next);
  return (
    <div class="members">
      {members.map((member, at) => (
        <Member
          key={at}
          at={at}
          count={members.length}
          form={{
            draft: member,
            base: before[at] ?? {},
            errors: errorsWithin(form.errors, `members[${at}]`),
            change: (path, value) => change(members.with(at, withValue(member, path, value))),
            suggestions: { upstream: upstreams },
            idPrefix: `members-${at}-`,
          }}
          onMove={(to) => change(moved(members, at, to))}
          onRemove={() => change(members.toSpliced(at, 1))}
        />
      ))}
      {form.errors
        .filter(({ path }) => path === 'members' || /^members\[\d+\]$/.test(path))
        .map(({ path, message }) => (
          <p key={path + message} class="wrong">
            {message}
          </p>
        ))}
      <button
        type="button"
        class="add"
        onClick={() => change([...members, newMember(members, upstreams)])}
      >
        Add member
      </button>
    </div>
  );
}

function Member(props: {
  readonly at: number;
  readonly count: number;
  readonly form: FormState;
  readonly onMove: (to: number) => void;
  readonly onRemove: () => void;
}) {
  const { at, count, form, onMove, onRemove } = props;
  const paths = [...FIELDS_OF_MEMBER.keys()];
  const more = Object.keys(MORE_MEMBER_FIELDS);
  const isMoreWrong = form.errors.some((error) => elsewhere([error], more).length === 0);
  return (
    <div class="member" role="group" aria-label={`Member ${at + 1}`}>
      <header>
        <h3>{nameOf(form.draft)}</h3>
        <MoveButton
          label={`Move member ${at + 1} up`}
          sign="↑"
          isOff={at === 0}
          onClick={() => onMove(at - 1)}
        />
        <MoveButton
          label={`Move member ${at + 1} down`}
          sign="↓"
          isOff={at === count - 1}
          onClick={() => onMove(at + 1)}
        />
        <button
          type="button"
          class="quiet"
          aria-label={`Remove member ${at + 1}`}
          onClick={onRemove}
        >
          ×
        </button>
      </header>
      <Fields fields={FIELDS_OF_MEMBER} labels={MEMBER_FIELDS} form={form} />
      <details open={isMoreWrong || undefined}>
        <summary>Name, models, rates and budgets</summary>
        <Fields fields={FIELDS_OF_MEMBER} labels={MORE_MEMBER_FIELDS} form={form} />
      </details>
      {elsewhere(form.errors, paths).map(({ path, message }) => (
        <p key={path} class="wrong">
          {path}: {message}
        </p>
      ))}
    </div>
  );
}

function MoveButton(props: {
  readonly label: string;
  readonly sign: string;
  readonly isOff: boolean;
  readonly onClick: () => void;
}) {
  return (
    <button
      type="button"
      class="quiet"
      aria-label={props.label}
      disabled={props.isOff}
      onClick={props.onClick}
    >
      {props.sign}
    </button>
  );
}

/** Id of a member, derived from the current input. */
function nameOf(member: EditedDocument): string {
  const { upstream } = member;
  if (typeof upstream !== 'string' || upstream === '') return 'Member without an upstream';
  return memberIdOf(member as MemberConfig);
}

/** Fields of the affinity, filled with defaults. */
export function AffinityField({ form }: { readonly form: FormState }) {
  const affinity = affinityIn(form.draft['affinity']);
  const wrong = form.errors.filter(({ path }) => path === 'affinity');
  return (
    <div class="member" role="group" aria-label="Affinity">
      <header>
        <h3>Affinity</h3>
      </header>
      <Fields
        fields={FIELDS_OF_AFFINITY}
        labels={AFFINITY_FIELDS}
        form={{
          draft: affinity,
          base: affinityIn(form.base['affinity']),
          errors: errorsWithin(form.errors, 'affinity'),
          change: (path, value) => {
            const next = affinityFrom(withValue(affinity, path, value));
            form.change('affinity', next);
          },
          idPrefix: 'affinity-',
        }}
      />
      {wrong.map(({ message }) => (
        <p key={message} class="wrong">
          {message}
        </p>
      ))}
    </div>
  );
}

function Fields(props: {
  readonly fields: ReadonlyMap<string, FieldOfSchema>;
  readonly labels: Readonly<Record<string, string>>;
  readonly form: FormState;
}) {
  const { fields, labels, form } = props;
  return (
    <div class="fields">
      {Object.entries(labels).map(([path, label]) => {
        const field = fields.get(path);
        return (
          field !== undefined && <SchemaField key={path} field={field} label={label} form={form} />
        );
      })}
    </div>
  );
}
