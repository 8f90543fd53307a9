import { groupSchema } from '../../../../src/contract/config/group.ts';
import { api } from '../../api.ts';
import type { EditedDocument } from '../../model/document.ts';
import { newGroupFor } from '../../model/new-group.ts';
import { may } from '../../session.ts';
import { SetLimits } from '../group/set-limits.tsx';
import { useAnswer } from '../../ui/use-answer.ts';
import { DeleteGroup } from './delete-group.tsx';
import { GroupEditor } from './group-editor.tsx';
import './edit.css';

/** Editor of a new group at `/admin/new`, or of an existing one at `/admin/groups/:name/edit`. */
export function EditPage(props: {
  readonly name?: string;
  readonly query?: Readonly<Record<string, string>>;
}) {
  const { name } = props;
  if (name !== undefined) return <ExistingGroup key={name} name={name} />;
  return <NewGroup like={props.query?.['like'] ?? null} />;
}

/** All defaults, with an empty name. */
const BLANK: EditedDocument = { ...groupSchema.parse({ name: 'new' }), name: '' };

function NewGroup({ like }: { readonly like: string | null }) {
  return (
    <>
      <header class="edit-head">
        <h1>New group</h1>
        <p class="help">
          A group limits calls that share a quota. Choose which calls belong to it, and how many may
          run at once. Everything else has a default.
        </p>
      </header>
      <GroupEditor base={BLANK} draft={newGroupFor(like, BLANK)} isNew />
    </>
  );
}

function ExistingGroup({ name }: { readonly name: string }) {
  const [answer] = useAnswer(() => api('GET /groups/{name}', { params: { name } }), [name]);
  const own = encodeURIComponent(name);
  if (answer !== null && !answer.ok) {
    return <NotEditable name={name} problem={answer.problem.detail} />;
  }
  const loaded = answer === null ? null : (answer.body as EditedDocument);
  return (
    <>
      <header class="edit-head">
        <p class="help">
          <a href={`/admin/groups/${own}`}>← {name}</a>
        </p>
        <h1>Edit {name}</h1>
        {may('admin') && loaded !== null && <DeleteGroup name={name} />}
      </header>
      {loaded === null ? (
        <div class="editor" aria-busy="true" />
      ) : (
        <GroupEditor base={loaded} draft={loaded} isNew={false} />
      )}
    </>
  );
}

function NotEditable({ name, problem }: { readonly name: string; readonly problem: string }) {
  if (name.startsWith('auto:')) {
    return (
      <>
        <h1>{name}</h1>
        <p>
          This group is automatic: its limit is built in or learned. <em>Set limits</em> gives it
          its own settings, and keeps its pools, its queue and what it has learned. Or create a
          group that matches the same calls and takes its place.
        </p>
        {may('admin') && <SetLimits name={name} />}{' '}
        <a class="button" href={`/admin/new?like=${encodeURIComponent(name)}`}>
          Create a group like it
        </a>
      </>
    );
  }
  if (name.startsWith('key:') || name.startsWith('team:')) {
    return (
      <>
        <h1>{name}</h1>
        <p>
          This group enforces the limits of a key or team.{' '}
          <a href="/admin/keys">Edit the key or team</a>
        </p>
      </>
    );
  }
  return (
    <>
      <h1>{name}</h1>
      <p role="alert">{problem}</p>
      <p>
        <a href="/admin">All groups</a>
      </p>
    </>
  );
}
