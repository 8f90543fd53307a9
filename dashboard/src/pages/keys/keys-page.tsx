import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { version } from '../../feed.ts';
import { rotations, type Key } from '../../model/keys.ts';
import { may } from '../../session.ts';
import { useAnswer } from '../../ui/use-answer.ts';
import { AdminKeys } from './admin-keys.tsx';
import { deleteKey, revokeKey, type OnAct } from './key-actions.tsx';
import { KeyDialog } from './key-dialog.tsx';
import { askKeyless, KeylessCallers } from './keyless.tsx';
import { KeyTable } from './key-table.tsx';
import { RotateDialog } from './rotate-dialog.tsx';
import { Teams } from './teams.tsx';
import { useSpent } from './use-spent.ts';
import './keys.css';

type OpenKeyDialog =
  | { readonly kind: 'new' }
  | { readonly kind: 'edit' | 'rotate'; readonly id: string };

export function KeysPage() {
  const [answer, again] = useAnswer(askKeys, [version.value]);
  const [keyless] = useAnswer(askKeyless, [version.value]);
  const spent = useSpent('key');
  const [open, setOpen] = useState<OpenKeyDialog | null>(null);
  const keys = answer?.keys ?? [];
  const close = (): void => setOpen(null);
  const act = async (kind: Parameters<OnAct>[0], id: string): Promise<void> => {
    if (kind === 'edit' || kind === 'rotate') return setOpen({ kind, id });
    await (kind === 'revoke' ? revokeKey(id) : deleteKey(id));
    again();
  };
  return (
    <>
      <h1>Keys</h1>
      <header class="page-head">
        <h2>Gateway keys</h2>
        {may('admin') ? (
          <button type="button" class="primary" onClick={() => setOpen({ kind: 'new' })}>
            New key
          </button>
        ) : (
          <small>Creating and changing keys requires the admin role.</small>
        )}
      </header>
      {answer?.problem !== undefined && <p role="alert">{answer.problem}</p>}
      <div class="keys-list" aria-busy={answer === null}>
        {answer !== null && answer.problem === undefined && keys.length === 0 && <NoKeys />}
        {answer !== null && keys.length > 0 && (
          <KeyTable
            keys={keys}
            rotatedAt={answer.rotatedAt}
            spent={spent}
            onAct={(kind, id) => void act(kind, id)}
          />
        )}
      </div>
      {open?.kind === 'new' && <KeyDialog onClose={close} onChanged={again} />}
      {open?.kind === 'edit' && <KeyDialog id={open.id} onClose={close} onChanged={again} />}
      {open?.kind === 'rotate' && <RotateDialog id={open.id} onClose={close} onChanged={again} />}
      {keyless !== null && <KeylessCallers of={keyless} />}
      <Teams />
      <AdminKeys />
    </>
  );
}

function NoKeys() {
  return (
    <p>
      No gateway keys yet, so callers need none and send their own provider keys. After you create
      the first key, every call needs one, unless the configuration sets{' '}
      <code>require_key: false</code>. With gateway keys, Headgate can inject your provider keys,
      and can limit and bill each caller separately.
    </p>
  );
}

const PAGE = 1_000;

async function askKeys() {
  const rotated = api('GET /audit', { query: { action: 'key ', limit: PAGE } });
  const keys: Key[] = [];
  let cursor: string | null = null;
  do {
    const query: { limit: number; cursor?: string } = { limit: PAGE };
    if (cursor !== null) query.cursor = cursor;
    const page = await api('GET /keys', { query });
    if (!page.ok) return { keys: [], rotatedAt: new Map(), problem: page.problem.detail };
    keys.push(...(page.body.keys as Key[]));
    cursor = page.body.next_cursor;
  } while (cursor !== null);
  const audit = await rotated;
  return { keys, rotatedAt: rotations(audit.ok ? audit.body.entries : []) };
}
