import { useLocation } from 'preact-iso';
import { api } from '../../api.ts';
import { groupNamed } from '../../feed.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';

/** Removes a group, after saying what becomes of the calls in it. */
export function DeleteGroup({ name }: { readonly name: string }) {
  const { route } = useLocation();
  const remove = async (): Promise<void> => {
    const present = await api('getGroup', { params: { name } });
    if (!present.ok) return complain(present.problem.detail);
    const status = groupNamed(name);
    const says = (
      <>
        <p>
          {status === undefined || status.in_use + status.queued === 0
            ? 'No call is in it now.'
            : `${status.in_use} in flight go on to their end; ${status.queued} waiting are routed again, with their age.`}
        </p>
        <p>
          New calls take the groups that still match them, or the automatic group of their upstream.
          This cannot be undone; the audit log keeps what the group was.
        </p>
      </>
    );
    if (!(await confirm({ title: `Delete ${name}?`, says, verb: 'Delete group' }))) return;
    const result = await api('deleteGroup', {
      params: { name },
      ...(present.etag === null ? {} : { ifMatch: present.etag }),
    });
    if (result.ok) {
      say(`Deleted ${name}.`);
      for (const warning of result.body.warnings) complain(warning);
      route('/admin');
    } else {
      complain(
        result.status === 412
          ? 'The configuration was changed meanwhile. Nothing was deleted; try again.'
          : result.problem.detail,
      );
    }
  };
  return (
    <button type="button" class="danger" onClick={() => void remove()}>
      Delete group…
    </button>
  );
}
