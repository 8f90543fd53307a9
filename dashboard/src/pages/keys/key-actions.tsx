import { api } from '../../api.ts';
import type { Key } from '../../model/keys.ts';
import { may } from '../../session.ts';
import { ChangeWarnings } from '../../ui/change-warnings.tsx';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';
import { callsOf } from './calls-of.ts';

/** Handler of what somebody wants to do with a key. */
export type OnAct = (act: 'edit' | 'rotate' | 'revoke' | 'delete', id: string) => void;

/** Actions of an admin on a key. */
export function KeyActions({ of: key, onAct }: { readonly of: Key; readonly onAct: OnAct }) {
  if (!may('admin')) return null;
  const { id, state } = key;
  const isRevoked = state === 'revoked';
  return (
    <div class="key-actions">
      <button type="button" aria-label={`Edit ${id}`} onClick={() => onAct('edit', id)}>
        Edit
      </button>
      <button
        type="button"
        aria-label={`Rotate ${id}`}
        disabled={isRevoked}
        onClick={() => onAct('rotate', id)}
      >
        Rotate
      </button>
      {isRevoked ? (
        <button
          type="button"
          class="danger"
          aria-label={`Delete ${id}`}
          onClick={() => onAct('delete', id)}
        >
          Delete
        </button>
      ) : (
        <button
          type="button"
          class="danger"
          aria-label={`Revoke ${id}`}
          onClick={() => onAct('revoke', id)}
        >
          Revoke
        </button>
      )}
    </div>
  );
}

/** Takes a key back, after saying to how many calls that happens. */
export async function revokeKey(id: string): Promise<void> {
  const [{ waiting, inFlight, isPart }, preview] = await Promise.all([
    callsOf(id),
    api('previewKey', { params: { id }, query: { as: 'revoke' } }),
  ]);
  const least = isPart ? 'at least ' : '';
  const says = (
    <>
      <p>
        New calls are refused within 5 seconds everywhere. {least}
        {waiting === 1 ? '1 call that waits is' : `${waiting} calls that wait are`} taken out of the
        queue; {least}
        {inFlight === 1 ? '1 call in flight goes' : `${inFlight} calls in flight go`} on to the end.
      </p>
      {preview.ok && <ChangeWarnings preview={preview.body} />}
      <p>It cannot be taken back: the key stays in the list, revoked, until it is deleted.</p>
    </>
  );
  if (!(await confirm({ title: `Revoke ${id}?`, says, verb: 'Revoke key' }))) return;
  const result = await api('revokeKey', { params: { id } });
  if (!result.ok) return complain(result.problem.detail);
  const gone = result.body.waiters_cancelled;
  say(
    `Revoked ${id}; ${gone === 1 ? '1 waiting call was' : `${gone} waiting calls were`} taken out.`,
  );
}

/** Forgets a key that was revoked. */
export async function deleteKey(id: string): Promise<void> {
  const says = <p>It disappears from the list. The audit log keeps that it was there.</p>;
  if (!(await confirm({ title: `Delete ${id}?`, says, verb: 'Delete key' }))) return;
  const result = await api('deleteKey', { params: { id } });
  if (result.ok) say(`Deleted ${id}.`);
  else complain(result.problem.detail);
}
