import { keyDocumentSchema } from '../../../../src/contract/config/keys.ts';
import { SchemaField } from '../../form/schema-field.tsx';
import { useDraft } from '../../form/use-draft.ts';
import { api } from '../../api.ts';
import { groups } from '../../feed.ts';
import type { EditedDocument } from '../../model/document.ts';
import { elsewhere } from '../../model/field-errors.ts';
import { KEY_SECTIONS } from '../../model/key-fields.ts';
import { BLANK_KEY, keyDocument, keySnippet, type Key } from '../../model/keys.ts';
import { fieldsOf } from '../../model/schema-fields.ts';
import { Modal } from '../../ui/modal.tsx';
import { SecretOnce } from '../../ui/secret-once.tsx';
import { useAnswer } from '../../ui/use-answer.ts';
import { Conflict } from '../edit/conflict.tsx';
import { useSaveKey } from './use-save-key.ts';
import { useWarned, Warned } from './warned.tsx';

const FIELDS = new Map(fieldsOf(keyDocumentSchema).map((field) => [field.path, field]));
const SHOWN = KEY_SECTIONS.flatMap(({ fields }) => Object.keys(fields));

interface KeyDialogProps {
  /** undefined for a new key. */
  readonly id?: string;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

export function KeyDialog(props: KeyDialogProps) {
  const { id, onClose } = props;
  const [answer] = useAnswer(
    async () =>
      id === undefined ? null : { key: await api('GET /keys/{id}', { params: { id } }) },
    [id],
  );
  if (id === undefined) return <KeyForm {...props} base={BLANK_KEY} etag={null} />;
  const loaded = answer?.key;
  if (loaded === undefined) return null;
  if (!loaded.ok) {
    return (
      <Modal title={`Edit ${id}`} onClose={onClose}>
        <p role="alert">{loaded.problem.detail}</p>
      </Modal>
    );
  }
  return <KeyForm {...props} base={keyDocument(loaded.body as Key)} etag={loaded.etag} />;
}

function KeyForm(
  props: KeyDialogProps & { readonly base: EditedDocument; readonly etag: string | null },
) {
  const { id, onClose, onChanged } = props;
  const draft = useDraft(keyDocumentSchema, props.base);
  const { form, changes } = draft;
  const done = (): void => {
    onChanged();
    onClose();
  };
  const saving = useSaveKey(id ?? null, props.etag, draft.refuse, done);
  const [teams] = useAnswer(askTeams, []);
  const warned = useWarned(
    draft.checked.ok ? draft.checked.value : null,
    saving.preview,
    saving.fail,
  );
  const suggestions = { groups: groups.value.map((group) => group.value.name).filter(isNamable) };

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const key = draft.attempt();
    if (key === null) return;
    if (await warned.mayMake(key)) await saving.save(key, form.base);
  };
  const countAsFree = async (): Promise<void> => {
    const key = draft.countAsFree();
    if (key !== null) await warned.look(key);
  };
  const restart = (base: EditedDocument, next?: EditedDocument): void => {
    draft.restart(base, next);
    saving.resolve();
  };

  const { secret, theirs } = saving;
  if (secret !== null) {
    const snippet = keySnippet(location.origin, secret.text);
    const title = `Key for ${secret.id}`;
    return (
      <SecretOnce
        key="secret"
        title={title}
        secret={secret.text}
        snippet={snippet}
        onClose={done}
      />
    );
  }
  const errors = elsewhere(form.errors, SHOWN);
  return (
    <Modal key="form" title={id === undefined ? 'New key' : `Edit ${id}`} onClose={onClose} isWide>
      {theirs !== undefined && (
        <Conflict
          base={form.base}
          mine={form.draft}
          theirs={theirs}
          onTakeOver={(merged) => restart(theirs ?? form.base, merged)}
          onStartAnew={() => restart(theirs ?? form.base)}
        />
      )}
      <form onSubmit={(event) => void submit(event)} noValidate>
        {KEY_SECTIONS.map((section) => (
          <section key={section.id} class="key-section" aria-label={section.title}>
            <h3>{section.title}</h3>
            {section.help !== '' && <p class="help">{section.help}</p>}
            <div class="fields">
              {Object.entries(section.fields).map(([path, label]) => {
                const field = FIELDS.get(path);
                // A key cannot be renamed. The title shows its id.
                if (field === undefined || (path === 'id' && id !== undefined)) return null;
                return (
                  <SchemaField
                    key={path}
                    field={field}
                    label={label}
                    form={{ ...form, suggestions, offers: { team: teams ?? [] } }}
                  />
                );
              })}
            </div>
          </section>
        ))}
        <Warned
          asked={warned.asked}
          group={`key:${String(form.draft['id'])}`}
          onFree={() => void countAsFree()}
        />
        <div role="alert">
          {errors.map(({ path, message }) => (
            <p key={path + message}>
              <code>{path}</code> {message}
            </p>
          ))}
          {saving.problem !== null && form.errors.length === 0 && <p>{saving.problem}</p>}
        </div>
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class="primary"
            disabled={saving.isBusy || warned.isBusy || (id !== undefined && changes.length === 0)}
          >
            {id === undefined ? 'Create key' : 'Save key'}
            {warned.asked !== null && ' anyway'}
          </button>
        </div>
      </form>
    </Modal>
  );
}

async function askTeams(): Promise<string[]> {
  const result = await api('GET /teams', { query: { limit: 1_000 } });
  return result.ok ? result.body.teams.map(({ id }) => id) : [];
}

/** Keys cannot be granted access to the groups of keys and teams. */
function isNamable(name: string): boolean {
  return !/^(key|team):/.test(name);
}
