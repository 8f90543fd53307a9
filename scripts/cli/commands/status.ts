import type { Attention } from '../../../src/contract/attention.ts';
import type { GroupStatus } from '../../../src/contract/group-status.ts';
import type { ScopeStatus } from '../../../src/contract/status.ts';
import { elsewhereWords, waitWords } from '../../../src/contract/status-words.ts';
import { dollars, plural } from '../../../src/core/words/figures.ts';
import { isHolding, scopeWords } from '../../../src/routing/scopes-shown.ts';
import { mapConcurrently } from '../../../src/runtime/async.ts';
import type { Output } from '../output.ts';
import { noteAll, show, span, table } from '../output.ts';
import { taken, takenOf, type CliTarget } from '../target.ts';

const GROUPS_AT_ONCE = 8;

async function statusOf(
  target: CliTarget,
  group: string | undefined,
): Promise<{ readonly version: number | null; readonly groups: readonly GroupStatus[] }> {
  if (group === undefined) return taken(await target.admin('GET /status'));
  const answer = await target.admin('GET /groups/{name}/status', { params: { name: group } });
  return { version: null, groups: [await takenOf(target, group, answer)] };
}

type ScopeStop = Omit<ScopeStatus, 'in_use' | 'last_refused_at'>;

/** Returns a line for each scope of a group that the upstream stops while all other calls start. */
function stopsOf({ name, about, scopes = [], ...group }: GroupStatus): string[] {
  // The status does not report how many queued calls the group's own state holds.
  const own = about === undefined ? [] : [{ ...group, about, queued: 0, limit: null }];
  const all: readonly ScopeStop[] = [...own, ...scopes];
  return all.filter(isHolding).map((one) => {
    const { about: calls, member, queued, pause } = one;
    const at = member === undefined ? '' : ` at ${member}`;
    const count = queued === 0 ? '' : `, ${queued} queued`;
    const message = pause?.message ? `: ${pause.message}` : '';
    return `${name}: only ${scopeWords(calls)}${at}: ${stateOf(one)}${count}${message}`;
  });
}

/** Describes how a scope holds its calls, and when that ends. */
function stateOf({
  breaker,
  breaker_until: probedAt,
  paused_until: until,
  limit,
}: ScopeStop): string {
  if (breaker === 'open') return `breaker open${probedAt === null ? '' : ` until ${probedAt}`}`;
  if (until !== null) return `paused until ${until}`;
  if (breaker === 'half_open') return 'breaker half open';
  return limit === null ? 'limited' : `limited to ${plural(limit, 'slot')}`;
}

/** Returns lines for waits that the table does not show: no call ends, or the calls of the group wait elsewhere. */
function waitsOf({
  name,
  stalled_ms: stalledMs,
  queued,
  waiting_elsewhere: elsewhere,
}: GroupStatus): string[] {
  const words = elsewhereWords(elsewhere);
  return [
    ...(typeof stalledMs === 'number' && queued > 0
      ? [`${name}: no call has ended for ${span(stalledMs)}, so waits cannot be estimated`]
      : []),
    ...(words === '' ? [] : [`${name}: ${words}`]),
  ];
}

/** Reads the attention list of one group or of all groups. */
async function readAttention(
  { admin }: CliTarget,
  group: string | undefined,
): Promise<readonly Attention[]> {
  const { attention } = taken(await admin('GET /attention', {}));
  return group === undefined ? attention : attention.filter((one) => one.group === group);
}

/** Prints the attention list, one line for each entry with its advice. The most severe entry is first. */
function showAttention(output: Output, attention: readonly Attention[]): void {
  if (attention.length === 0) return output.note('Needs attention: nothing.');
  output.note(`Needs attention: ${attention.length}`);
  noteAll(
    output,
    attention.map(
      ({ rule, subject, says, advice }) =>
        `${rule} (${subject.kind} ${subject.id}): ${says} ${advice}`,
    ),
  );
}

export async function showStatus(
  target: CliTarget,
  output: Output,
  group: string | undefined,
): Promise<void> {
  const [status, attention] = await Promise.all([
    statusOf(target, group),
    readAttention(target, group),
  ]);
  show(output, { ...status, attention }, () => {
    if (status.groups.length === 0) return 'No groups are configured, and no calls have arrived.';
    const head = ['group', 'state', 'in use', 'limit', 'queued', 'oldest', 'p95', '$ today'];
    return table(
      head,
      status.groups.map((each) => [
        each.name,
        each.state,
        each.in_use,
        each.limit.effective ?? 'unlimited',
        each.queued,
        each.oldest_wait_ms ? span(each.oldest_wait_ms) : null,
        each.wait_p95_ms === null ? null : span(each.wait_p95_ms),
        each.spend === null ? null : dollars(each.spend.day_usd),
      ]),
    );
  });
  if (!output.isJson) {
    showAttention(output, attention);
    noteAll(output, status.groups.flatMap(stopsOf));
    noteAll(output, status.groups.flatMap(waitsOf));
  }
  if (!output.isJson && status.version !== null) {
    output.note(`Configuration: version ${status.version}.`);
  }
}

/** Lists the groups for which `isBusy` holds, or only the named group. */
async function busyGroups(
  target: CliTarget,
  group: string | undefined,
  isBusy: (status: GroupStatus) => boolean,
): Promise<string[]> {
  if (group !== undefined) return [group];
  const { groups } = taken(await target.admin('GET /status'));
  return groups.filter(isBusy).map(({ name }) => name);
}

/** Lists the leases of one group or of all groups, oldest first. */
export async function allLeases(target: CliTarget, group: string | undefined) {
  const groups = await busyGroups(target, group, ({ in_use: inUse }) => inUse > 0);
  const lists = await mapConcurrently(groups, GROUPS_AT_ONCE, async (name) => {
    const answer = await target.admin('GET /groups/{name}/leases', { params: { name } });
    const { leases, unreachable } = await takenOf(target, name, answer);
    return { name, items: leases.map((lease) => ({ group: name, ...lease })), unreachable };
  });
  return joined(lists, (a, b) => b.age_ms - a.age_ms);
}

/** Lists the queued calls of one group or of all groups. Within a group, the next one is first. */
async function allWaiters(target: CliTarget, group: string | undefined) {
  const groups = await busyGroups(target, group, ({ queued }) => queued > 0);
  const lists = await mapConcurrently(groups, GROUPS_AT_ONCE, async (name) => {
    const answer = await target.admin('GET /groups/{name}/waiters', { params: { name } });
    const list = await takenOf(target, name, answer);
    const { waiters, unreachable } = list;
    const items = waiters.map((waiter) => ({ group: name, ...waiter }));
    return { name, items, unreachable, elsewhere: list.waiting_elsewhere };
  });
  // Without a group, calls that wait elsewhere are already in the list of the other group.
  const elsewhere = group === undefined ? [] : lists.flatMap((list) => list.elsewhere);
  return { ...joined(lists, () => 0), elsewhere };
}

interface StatusList<Item> {
  readonly name: string;
  readonly items: readonly Item[];
  readonly unreachable: readonly { readonly partition: string | null; readonly error: string }[];
}

function joined<Item>(lists: readonly StatusList<Item>[], order: (a: Item, b: Item) => number) {
  return {
    items: lists.flatMap(({ items }) => items).toSorted(order),
    unreachable: lists.flatMap(({ name, unreachable }) =>
      unreachable.map(({ partition, error }) => ({ group: name, partition, error })),
    ),
  };
}

const notAnswering = (
  unreachable: readonly { group: string; partition: string | null; error: string }[],
): string[] =>
  unreachable.map(
    ({ group, partition, error }) =>
      `${group}${partition === null ? '' : ` ${partition}`} did not respond: ${error}`,
  );

export async function showLeases(
  target: CliTarget,
  output: Output,
  group: string | undefined,
): Promise<void> {
  const { items, unreachable } = await allLeases(target, group);
  show(output, { leases: items, unreachable }, () =>
    items.length === 0
      ? 'No leases.'
      : table(
          ['lease', 'group', 'held', 'slots', 'caller', 'agent', 'model', 'upstream', 'state'],
          items.map((each) => [
            each.id,
            each.group,
            span(each.age_ms),
            each.slots,
            each.caller,
            each.agent,
            each.model,
            each.upstream,
            each.state,
          ]),
        ),
  );
  noteAll(output, notAnswering(unreachable));
}

const WAITER_COLUMNS = [
  'ticket',
  'group',
  'ahead',
  'waited',
  'estimate',
  'wait reason',
  'lane',
  'tenant',
  'agent',
  'model',
];

export async function showWaiters(
  target: CliTarget,
  output: Output,
  group: string | undefined,
): Promise<void> {
  const { items, unreachable, elsewhere } = await allWaiters(target, group);
  const list = group === undefined ? {} : { waiting_elsewhere: elsewhere };
  show(output, { waiters: items, ...list, unreachable }, () =>
    items.length === 0
      ? 'No queued calls.'
      : table(
          WAITER_COLUMNS,
          items.map((each) => [
            each.ticket,
            each.group,
            each.position,
            span(each.waited_ms),
            each.estimate_ms === null ? 'unknown' : `≈ ${span(each.estimate_ms)}`,
            waitWords(each, each.scope === undefined ? undefined : scopeWords(each.scope)),
            each.lane,
            each.tenant,
            each.agent,
            each.model,
          ]),
        ),
  );
  const words = elsewhereWords(elsewhere);
  if (!output.isJson && words !== '') output.note(`${words}.`);
  noteAll(output, notAnswering(unreachable));
}
