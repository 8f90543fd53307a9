import { useState } from 'preact/hooks';
import { keyDocumentSchema } from '../../../../src/contract/admin/key-documents.ts';
import { SchemaField } from '../../form/schema-field.tsx';
import { useDraft } from '../../form/use-draft.ts';
import { api } from '../../api.ts';
import { groups } from '../../feed.ts';
import type { Document } from '../../model/document.ts';
import { elsewhere } from '../../model/field-errors.ts';
import { KEY_SECTIONS } from '../../model/key-fields.ts';
import { BLANK_KEY, keyDocument, keySnippet, type Key } from '../../model/keys.ts';
import { fieldsOf } from '../../model/schema-fields.ts';
import { Modal } from '../../ui/modal.tsx';
import { SecretOnce } from '../../ui/secret-once.tsx';
import { useAnswer } from '../../ui/use-answer.ts';
import { Conflict } from '../edit/conflict.tsx';
import { askKeyless, callersText, type Keyless } from './keyless.tsx';
import { useSaveKey } from './use-save-key.ts';

const FIELDS = new Map(fieldsOf(keyDocumentSchema).map((field) => [field.path, field]));
const SHOWN = KEY_SECTIONS.flatMap(({ fields }) => Object.keys(fields));

interface KeyDialogProps {
  /** Undefined: a new one. */
  readonly id?: string;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

/** Makes a key, or changes what one may do. */
export function KeyDialog(props: KeyDialogProps) {
  const { id, onClose } = props;
  const [answer] = useAnswer(
    async () => (id === undefined ? null : { key: await api('getKey', { params: { id } }) }),
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
  props: KeyDialogProps & { readonly base: Document; readonly etag: string | null },
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
  const [keyless] = useAnswer(async () => (id === undefined ? askKeyless() : null), [id]);
  const [isSure, setSure] = useState(false);
  const lockedOut = keyless?.first_key.callers ? keyless.first_key : null;
  const suggestions = { groups: groups.value.map((group) => group.value.name).filter(isNamable) };

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const key = draft.attempt();
    if (key === null) return;
    // The first click shows what the second one does.
    if (lockedOut !== null && !isSure) return setSure(true);
    await saving.save(key, form.base);
  };
  const restart = (base: Document, next?: Document): void => {
    draft.restart(base, next);
    saving.resolve();
  };

  const { secret, theirs } = saving;
  if (secret !== null) {
    const snippet = keySnippet(location.origin, secret.text);
    const title = `The key of ${secret.id}`;
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
                // A key cannot be renamed: its id stands in the title.
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
        {lockedOut !== null && <LockedOut of={lockedOut} isAsked={isSure} />}
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
            disabled={saving.isBusy || (id !== undefined && changes.length === 0)}
          >
            {id !== undefined ? 'Save key' : isSure ? 'Create it and refuse them' : 'Create key'}
          </button>
        </div>
      </form>
    </Modal>
  );
}

/** Warns that the first key locks out callers of the last hour. */
function LockedOut(props: { readonly of: Keyless['sums']; readonly isAsked: boolean }) {
  return (
    <p class="locked-out" role={props.isAsked ? 'alert' : 'note'}>
      With the first key every call needs one. {callersText(props.of)} in the last hour had none and
      would be refused. To move them one by one, set <code>require_key: false</code> in the
      configuration first.
    </p>
  );
}

/** Names of teams that there are. */
async function askTeams(): Promise<string[]> {
  const result = await api('listTeams', { query: { limit: 1_000 } });
  return result.ok ? result.body.teams.map(({ id }) => id) : [];
}

/** Groups of keys and teams are none that a key may be let into. */
function isNamable(name: string): boolean {
  return !/^(key|team):/.test(name);
}
