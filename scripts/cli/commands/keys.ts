import { isConfirmed } from './config.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { show, noteAll, span, table, type Output } from '../output.ts';
import { taken, type Target } from '../target.ts';

/** Keys of one page. */
const PAGE = 1_000;

/** Shows the keys of callers, without anything that opens. */
export async function listKeys(target: Target, output: Output): Promise<void> {
  const keys: KeyRow[] = [];
  let cursor: string | null = null;
  do {
    const query = { limit: PAGE, ...(cursor === null ? {} : { cursor }) };
    const page: { keys: readonly KeyRow[]; next_cursor: string | null } = taken(
      await target.admin('listKeys', { query }),
    );
    keys.push(...page.keys);
    cursor = page.next_cursor;
  } while (cursor !== null);
  show(output, { keys }, () =>
    keys.length === 0
      ? 'There are none: callers bring their own provider keys.'
      : table(
          ['key', 'state', 'groups', 'slots', 'expires', 'note'],
          keys.map((key) => [
            key.id,
            key.state,
            key.groups.join(' ') || 'all',
            key.limits.max_concurrency ?? 'any',
            key.expires_at,
            key.note,
          ]),
        ),
  );
}

interface KeyRow {
  readonly id: string;
  readonly state: string;
  readonly groups: readonly string[];
  readonly limits: { readonly max_concurrency: number | null };
  readonly expires_at: string | null;
  readonly note: string;
}

/** Fields of a new key that can be chosen here. */
export interface NewKey {
  readonly groups?: string[];
  readonly allow?: string[];
  readonly expires?: string;
  readonly note?: string;
  readonly slots?: number;
  /** Does not ask. */
  readonly yes?: boolean;
}

/**
 * Asks before a first key that would refuse callers of the last hour. Only on a terminal, because scripts take the key from
 * standard output.
 */
async function mayLockOut({ admin }: Target, output: Output): Promise<boolean> {
  const answer = await admin('listKeyless');
  // A deployment of an older release does not know the route.
  const { callers = 0, calls = 0 } = answer.ok ? answer.body.first_key : {};
  if (callers === 0) return true;
  output.note(
    `! With the first key every call needs one. Within the last hour ${callers === 1 ? '1 caller' : `${callers} callers`} without a key made ${calls === 1 ? '1 call' : `${calls} calls`}, which would be refused. To move callers one by one, set require_key: false first.`,
  );
  return !process.stdin.isTTY || isConfirmed(output, 'Create the key?');
}

/** Makes a key. The key alone goes to standard output, so that a script can take it. */
export async function createKey(
  target: Target,
  output: Output,
  id: string,
  { groups, allow, expires, note, slots, yes }: NewKey,
): Promise<ExitCode> {
  if (yes !== true && !(await mayLockOut(target, output))) {
    output.note('Nothing was changed.');
    return EXIT.no;
  }
  const body = {
    id,
    ...(groups === undefined ? {} : { groups }),
    ...(allow === undefined ? {} : { allow }),
    ...(expires === undefined ? {} : { expires_at: expires }),
    ...(note === undefined ? {} : { note }),
    ...(slots === undefined ? {} : { limits: { max_concurrency: slots } }),
  };
  const answer = taken(await target.admin('createKey', { body }));
  output.note('The key, shown this once:');
  show(output, answer, () => answer.secret);
  noteAll(output, answer.warnings);
  return EXIT.ok;
}

/** Makes a new key under the same id; the one before opens on for a while. */
export async function rotateKey(
  target: Target,
  output: Output,
  id: string,
  graceMs: number | undefined,
): Promise<void> {
  const body = graceMs === undefined ? {} : { body: { grace_ms: graceMs } };
  const answer = taken(await target.admin('rotateKey', { params: { id }, ...body }));
  const until = answer.key.previous_expires_at;
  const left = until === null ? 0 : Date.parse(until) - Date.now();
  output.note(
    `The new key, shown this once. ${left > 0 ? `The one before opens for ${span(left)} more.` : 'The one before opens no more.'}`,
  );
  show(output, answer, () => answer.secret);
  noteAll(output, answer.warnings);
}

/** Takes a key back. */
export async function revokeKey(target: Target, output: Output, id: string): Promise<void> {
  const answer = taken(await target.admin('revokeKey', { params: { id } }));
  const { waiters_cancelled: cancelled } = answer;
  show(output, answer, () =>
    [
      `${id} opens nothing within 5 seconds; what is in flight goes on.`,
      ...(cancelled > 0 ? [`${cancelled} of its calls that waited were refused.`] : []),
    ].join('\n'),
  );
  noteAll(output, answer.warnings);
}

/** Removes a key and forgets it. */
export async function deleteKey(target: Target, output: Output, id: string): Promise<void> {
  const answer = taken(await target.admin('deleteKey', { params: { id } }));
  show(output, answer, () => `${id} is forgotten.`);
  noteAll(output, answer.warnings);
}
