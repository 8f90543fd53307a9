import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { version } from '../../feed.ts';
import { may } from '../../session.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';
import { useAnswer } from '../../ui/use-answer.ts';
import { When } from '../../ui/when.tsx';
import { AdminKeyDialog } from './admin-key-dialog.tsx';

/** Keys for the admin API and this page, in addition to ADMIN_TOKEN. */
export function AdminKeys() {
  return (
    <section class="admin-keys" aria-labelledby="admin-keys">
      {may('admin') ? (
        <AdminKeyList />
      ) : (
        <>
          <h2 id="admin-keys">Admin keys</h2>
          <p class="help">Viewing and creating admin keys requires the admin role.</p>
        </>
      )}
    </section>
  );
}

function AdminKeyList() {
  const [answer, again] = useAnswer(
    () => api('GET /admin-keys', { query: { limit: 1_000 } }),
    [version.value],
  );
  const [isCreating, setCreating] = useState(false);
  const keys = answer?.ok === true ? answer.body.admin_keys : [];
  return (
    <>
      <header class="page-head">
        <h2 id="admin-keys">Admin keys</h2>
        <button type="button" onClick={() => setCreating(true)}>
          New admin key
        </button>
      </header>
      <p class="help">
        For this page and the admin API, in addition to <code>ADMIN_TOKEN</code>. A viewer reads
        everything. An operator also pauses, drains, releases leases, and cancels and promotes
        calls. An admin can do everything.
      </p>
      {answer?.ok === false && <p role="alert">{answer.problem.detail}</p>}
      {answer?.ok === true && keys.length === 0 && (
        <p>
          No admin keys yet. Only ADMIN_TOKEN opens this page. Create a key for each person, and the
          audit log shows who changed what.
        </p>
      )}
      {keys.length > 0 && (
        <div class="table" tabIndex={0} role="region" aria-label="Admin keys">
          <table>
            <thead>
              <tr>
                <th scope="col">Key</th>
                <th scope="col">Role</th>
                <th scope="col">State</th>
                <th scope="col">Created</th>
                <th scope="col">Expires</th>
                <th scope="col">
                  <span class="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {keys.map(({ id, role, state, created_at, expires_at }) => (
                <tr key={id}>
                  <th scope="row">
                    <code>{id}</code>
                  </th>
                  <td>{role}</td>
                  <td>
                    <span class={`key-state ${state}`}>{state}</span>
                  </td>
                  <td>{created_at === null ? '–' : <When at={created_at} />}</td>
                  <td>
                    {expires_at === null ? (
                      <span class="dim">never</span>
                    ) : (
                      <When at={expires_at} />
                    )}
                  </td>
                  <td>
                    <button
                      type="button"
                      class="danger"
                      aria-label={`Delete ${id}`}
                      onClick={() => void remove(id).then(again)}
                    >
                      Delete
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {isCreating && <AdminKeyDialog onClose={() => setCreating(false)} onChanged={again} />}
    </>
  );
}

async function remove(id: string): Promise<void> {
  const says = <p>Sessions with this key end immediately, and its requests are rejected.</p>;
  if (!(await confirm({ title: `Delete ${id}?`, says, verb: 'Delete admin key' }))) return;
  const result = await api('DELETE /admin-keys/{id}', { params: { id } });
  if (result.ok) say(`Deleted ${id}.`);
  else complain(result.problem.detail);
}
