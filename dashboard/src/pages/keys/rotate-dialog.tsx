import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { GRACES, keySnippet } from '../../model/keys.ts';
import { Field } from '../../ui/field.tsx';
import { Modal } from '../../ui/modal.tsx';
import { SecretOnce } from '../../ui/secret-once.tsx';
import { useWarned, Warned } from './warned.tsx';

interface RotateProps {
  readonly id: string;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

/** Creates a new key with the same id. The previous key stays valid for the chosen time. */
export function RotateDialog({ id, onClose, onChanged }: RotateProps) {
  const [graceMs, setGraceMs] = useState<number>(86_400_000);
  const [secret, setSecret] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const warned = useWarned(
    graceMs,
    () => api('POST /keys/{id}/preview', { params: { id }, query: { as: 'revoke' } }),
    ({ detail }) => setProblem(detail),
  );
  const grace = GRACES.find(({ ms }) => ms === graceMs)?.label ?? '';

  const rotate = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    // With a grace period, the previous key still works.
    if (graceMs === 0 && !(await warned.mayMake(graceMs))) return;
    setBusy(true);
    const result = await api('POST /keys/{id}/rotate', {
      params: { id },
      body: { grace_ms: graceMs },
    });
    setBusy(false);
    if (result.ok) setSecret(result.body.secret);
    else setProblem(result.problem.detail);
  };

  if (secret !== null) {
    const close = (): void => {
      onChanged();
      onClose();
    };
    return (
      <SecretOnce
        key="secret"
        title={`New key for ${id}`}
        secret={secret}
        snippet={keySnippet(location.origin, secret)}
        note={
          graceMs === 0
            ? 'The previous key no longer works.'
            : `The previous key works for ${grace} more.`
        }
        onClose={close}
      />
    );
  }
  return (
    <Modal key="ask" title={`Rotate ${id}`} onClose={onClose}>
      <form onSubmit={(event) => void rotate(event)}>
        <Field
          id="grace"
          label="Grace period of the previous key"
          help="Time for callers to switch to the new key. Keys from earlier rotations stop working immediately."
        >
          {(attributes) => (
            <select
              {...attributes}
              value={graceMs}
              onChange={(event) => setGraceMs(Number(event.currentTarget.value))}
            >
              {GRACES.map(({ ms, label }) => (
                <option key={ms} value={ms}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Warned asked={warned.asked} />
        {problem !== null && <p role="alert">{problem}</p>}
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={isBusy || warned.isBusy}>
            Rotate key
            {warned.asked !== null && ' anyway'}
          </button>
        </div>
      </form>
    </Modal>
  );
}
