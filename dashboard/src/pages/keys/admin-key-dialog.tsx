import { useState } from 'preact/hooks';
import { adminKeyDocumentSchema } from '../../../../src/contract/config/keys.ts';
import { SchemaField } from '../../form/schema-field.tsx';
import { useDraft } from '../../form/use-draft.ts';
import { api } from '../../api.ts';
import { ADMIN_KEY_FIELDS } from '../../model/key-fields.ts';
import { adminKeySnippet } from '../../model/keys.ts';
import { fieldsOf } from '../../model/schema-fields.ts';
import { Modal } from '../../ui/modal.tsx';
import { SecretOnce } from '../../ui/secret-once.tsx';

const schema = adminKeyDocumentSchema;
const FIELDS = fieldsOf(schema);
const BLANK = { id: '', role: 'viewer', expires_at: null };

interface AdminKeyDialogProps {
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

export function AdminKeyDialog({ onClose, onChanged }: AdminKeyDialogProps) {
  const draft = useDraft(schema, BLANK);
  const [secret, setSecret] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);

  const create = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const body = draft.attempt();
    if (body === null) return;
    setBusy(true);
    const result = await api('POST /admin-keys', { body });
    setBusy(false);
    if (result.ok) return setSecret(result.body.secret);
    const { detail, errors } = result.problem;
    draft.refuse(result.status === 409 ? [{ path: 'id', message: detail }] : (errors ?? []));
    setProblem(detail);
  };

  if (secret !== null) {
    const close = (): void => {
      onChanged();
      onClose();
    };
    return (
      <SecretOnce
        key="secret"
        title="New admin key"
        secret={secret}
        snippet={adminKeySnippet(location.origin, secret)}
        onClose={close}
      />
    );
  }
  return (
    <Modal key="form" title="New admin key" onClose={onClose}>
      <form onSubmit={(event) => void create(event)} noValidate class="stack">
        {FIELDS.map((field) => {
          const label = ADMIN_KEY_FIELDS[field.path];
          return label === undefined ? null : (
            <SchemaField key={field.path} field={field} label={label} form={draft.form} />
          );
        })}
        {problem !== null && draft.form.errors.length === 0 && <p role="alert">{problem}</p>}
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={isBusy}>
            Create admin key
          </button>
        </div>
      </form>
    </Modal>
  );
}
