import { useState } from 'preact/hooks';
import { teamSchema } from '../../../../src/contract/config/keys.ts';
import { api, type Problem } from '../../api.ts';
import { SchemaField } from '../../form/schema-field.tsx';
import { useDraft } from '../../form/use-draft.ts';
import { fieldsOf } from '../../model/schema-fields.ts';
import { BLANK_TEAM, TEAM_SECTIONS, teamDocument, type Team } from '../../model/teams.ts';
import { Modal } from '../../ui/modal.tsx';
import { say } from '../../ui/toasts.tsx';
import { useWarned, Warned } from './warned.tsx';

const FIELDS = new Map(fieldsOf(teamSchema).map((field) => [field.path, field]));

interface TeamDialogProps {
  /** null for a new team. */
  readonly team: Team | null;
  readonly etag: string | null;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

export function TeamDialog({ team, etag, onClose, onChanged }: TeamDialogProps) {
  const draft = useDraft(teamSchema, team === null ? BLANK_TEAM : teamDocument(team));
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);

  const fail = ({ status, detail, errors }: Problem): void => {
    draft.refuse(errors ?? []);
    setProblem(
      status === 412
        ? 'The configuration changed in the meantime. Close this dialog, check the team, and try again.'
        : detail,
    );
  };
  const warned = useWarned(
    draft.checked.ok ? draft.checked.value : null,
    (body) => api('POST /teams/{id}/preview', { params: { id: body.id }, body }),
    fail,
  );

  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const body = draft.attempt();
    if (body === null) return;
    if (!(await warned.mayMake(body))) return;
    setBusy(true);
    const ifMatch = etag === null ? {} : { ifMatch: etag };
    const result = await api('PUT /teams/{id}', { params: { id: body.id }, body, ...ifMatch });
    setBusy(false);
    if (result.ok) {
      say(`Saved team ${body.id}.`);
      onChanged();
      return onClose();
    }
    fail(result.problem);
  };
  const countAsFree = async (): Promise<void> => {
    const body = draft.countAsFree();
    if (body !== null) await warned.look(body);
  };

  const { form, changes } = draft;
  return (
    <Modal title={team === null ? 'New team' : `Edit team ${team.id}`} onClose={onClose} isWide>
      <form onSubmit={(event) => void save(event)} noValidate>
        {TEAM_SECTIONS.map((section) => (
          <section key={section.id} class="key-section" aria-label={section.title}>
            <h3>{section.title}</h3>
            {section.help !== '' && <p class="help">{section.help}</p>}
            <div class="fields">
              {Object.entries(section.fields).map(([path, label]) => {
                const field = FIELDS.get(path);
                // A team cannot be renamed. The title shows its id.
                if (field === undefined || (path === 'id' && team !== null)) return null;
                return <SchemaField key={path} field={field} label={label} form={form} />;
              })}
            </div>
          </section>
        ))}
        <Warned
          asked={warned.asked}
          group={`team:${String(form.draft['id'])}`}
          onFree={() => void countAsFree()}
        />
        {problem !== null && form.errors.length === 0 && <p role="alert">{problem}</p>}
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class="primary"
            disabled={isBusy || warned.isBusy || (team !== null && changes.length === 0)}
          >
            Save team
            {warned.asked !== null && ' anyway'}
          </button>
        </div>
      </form>
    </Modal>
  );
}
