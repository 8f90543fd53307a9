import { api } from '../../api.ts';
import { plural } from '../../format.ts';
import type { Key } from '../../model/keys.ts';
import { may } from '../../session.ts';
import { ChangeWarnings } from '../../ui/change-warnings.tsx';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';
import { callsOf } from './calls-of.ts';

export type OnAct = (act: 'edit' | 'rotate' | 'revoke' | 'delete', id: string) => void;

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

/** Revokes a key, after a confirmation with the number of affected calls. */
export async function revokeKey(id: string): Promise<void> {
  const [{ waiting, inFlight, isPart }, preview] = await Promise.all([
    callsOf(id),
    api('POST /keys/{id}/preview', { params: { id }, query: { as: 'revoke' } }),
  ]);
  const least = isPart ? 'At least ' : '';
  const says = (
    <>
      <p>
        New calls are rejected within 5 seconds everywhere. {least}
        {plural(waiting, 'queued call')} {waiting === 1 ? 'is' : 'are'} cancelled. {least}
        {plural(inFlight, 'call')} in flight {inFlight === 1 ? 'continues' : 'continue'} to the end.
      </p>
      {preview.ok && <ChangeWarnings preview={preview.body} />}
      <p>This cannot be undone. The key stays in the list as revoked until it is deleted.</p>
    </>
  );
  if (!(await confirm({ title: `Revoke ${id}?`, says, verb: 'Revoke key' }))) return;
  const result = await api('POST /keys/{id}/revoke', { params: { id } });
  if (!result.ok) return complain(result.problem.detail);
  const gone = result.body.waiters_cancelled;
  say(`Revoked ${id}. ${plural(gone, 'queued call')} ${gone === 1 ? 'was' : 'were'} cancelled.`);
}

export async function deleteKey(id: string): Promise<void> {
  const says = <p>The key disappears from the list. The audit log keeps its history.</p>;
  if (!(await confirm({ title: `Delete ${id}?`, says, verb: 'Delete key' }))) return;
  const result = await api('DELETE /keys/{id}', { params: { id } });
  if (result.ok) say(`Deleted ${id}.`);
  else complain(result.problem.detail);
}
