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

/** Makes a new key under the same id; the one before goes on to open for a while. */
export function RotateDialog({ id, onClose, onChanged }: RotateProps) {
  const [graceMs, setGraceMs] = useState<number>(86_400_000);
  const [secret, setSecret] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const warned = useWarned(
    graceMs,
    () => api('previewKey', { params: { id }, query: { as: 'revoke' } }),
    ({ detail }) => setProblem(detail),
  );
  const grace = GRACES.find(({ ms }) => ms === graceMs)?.label ?? '';

  const rotate = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    // With a grace period the key before still opens.
    if (graceMs === 0 && !(await warned.mayMake(graceMs))) return;
    setBusy(true);
    const result = await api('rotateKey', { params: { id }, body: { grace_ms: graceMs } });
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
        title={`The new key of ${id}`}
        secret={secret}
        snippet={keySnippet(location.origin, secret)}
        note={
          graceMs === 0
            ? 'The key before opens no more.'
            : `The key before opens for ${grace} longer.`
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
          label="The key before opens"
          help="Time for callers to take the new one. A key from before the last rotation opens no more."
        >
          {(attributes) => (
            <select
              {...attributes}
              value={graceMs}
              onChange={(event) => setGraceMs(Number(event.currentTarget.value))}
            >
              {GRACES.map(({ ms, label }) => (
                <option key={ms} value={ms}>
                  {ms === 0 ? label : `for ${label} longer`}
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
