import { useLocation } from 'preact-iso';
import { api } from '../../api.ts';
import { groupNamed } from '../../feed.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';

/** Deletes a group, after a confirmation that says what happens to its calls. */
export function DeleteGroup({ name }: { readonly name: string }) {
  const { route } = useLocation();
  const remove = async (): Promise<void> => {
    const present = await api('GET /groups/{name}', { params: { name } });
    if (!present.ok) return complain(present.problem.detail);
    const status = groupNamed(name);
    const says = (
      <>
        <p>
          {status === undefined || status.in_use + status.queued === 0
            ? 'It has no calls now.'
            : `Calls in flight (${status.in_use}) continue to the end. Queued calls (${status.queued}) are routed again and keep their age.`}
        </p>
        <p>
          New calls use the other groups that match them, or the automatic group of their upstream.
          This cannot be undone. The audit log keeps the configuration of the group.
        </p>
      </>
    );
    if (!(await confirm({ title: `Delete ${name}?`, says, verb: 'Delete group' }))) return;
    const result = await api('DELETE /groups/{name}', {
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
          ? 'The configuration changed in the meantime. Nothing was deleted. Try again.'
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
