import { steadyClock } from '../../runtime/steady-clock.ts';
import { poolName } from '../../contract/pool-name.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import type { Outcome } from '../../core/words/outcome.ts';
import type { RateRoom } from '../../core/parts/rate-room.ts';
import { SERVED } from '../../core/words/signal.ts';
import { GROUPS_PER_CALL_MAX, type Placement, type RoutedCall } from '../../routing/placement.ts';
import { KEY_PREFIX } from '../../routing/key-groups.ts';
import { waitsUntil, type Admission, type Settle, type Ticket } from './admission.ts';
import { admitOne, type AdmitContext, type AdmittedOne, type Manner } from './admit-one.ts';
import { noteByNames } from '../call-names.ts';
import { LeaseHolder, type HeldLease } from './lease-holder.ts';
import { isOnTrial, poolSource } from './pools.ts';
import { ownOrShared } from './shared-partition.ts';
import { untilOpened } from './until-opened.ts';
import { LEFT, rejected } from '../result.ts';
import { PlainAbort } from '../../runtime/plain-abort.ts';

export type Admitted =
  | { readonly kind: 'admitted'; readonly admission: Admission }
  | Exclude<AdmittedOne, { kind: 'admitted' | 'declined' }>;

type One = Extract<AdmittedOne, { kind: 'admitted' }>;
type Declined = Extract<AdmittedOne, { kind: 'declined' }>;

/**
 * How long nobody tries all groups at once after one of them queued somebody: it is probably full.
 */
const QUEUED_RECENTLY_MS = 1_000;
const QUEUED_MAX = 1_000;

/** When each pool last declined a try, or queued somebody, as far as this isolate knows. */
const queuedAt = new Map<string, number>();

/** Gets a call its slots in every group that it belongs to (`placed`), or a definite answer why not. */
export async function admit(
  call: RoutedCall,
  ticket: Ticket,
  placed: readonly Placement[],
  outer: AdmitContext,
): Promise<Admitted> {
  const { env, table } = outer;
  const mayShare = (table.snapshot.fullGroups?.length ?? 0) > 0;
  const placements = mayShare
    ? await Promise.all(
        placed.map(async (one) => (isOnTrial(env, one) ? one : ownOrShared(env, table, one))),
      )
    : placed;
  const [narrowest, ...wider] = placements;
  if (narrowest === undefined || placements.length > GROUPS_PER_CALL_MAX) {
    return rejected(tooMany(placements));
  }
  const context = outer.metering === null ? outer : { ...outer, billed: billedOf(placements) };
  if (wider.length > 0) return admitToSeveral(call, ticket, placements, context);
  const round = ticket.rounds.begin();
  const manner = { ...round, isTry: false, waitsElsewhere: false, holdsNarrower: false };
  const one = await admitOne(call, ticket, narrowest, manner, context);
  if (one.kind === 'admitted') return { kind: 'admitted', admission: admissionOf([one], context) };
  return one.kind === 'declined' ? LEFT : one;
}

/**
 * Finds the one of a call's pools in whose costs it stands: the narrowest that stands for something of a provider. Limits of a
 * key or a team come on top.
 */
export function billedOf(placements: readonly Placement[]): Placement | null {
  return placements.find(({ isOfProvider }) => isOfProvider) ?? null;
}

/**
 * Several groups: all at once if that works, which is one round trip. Otherwise what was granted goes
 * back, and the slots are taken one after the other, narrow first, holding what is held. The order is the
 * same for every call, so nobody waits in a circle; and only what is narrower is held during a wait, so
 * a wide group never stands idle for the sake of a narrow one.
 */
async function admitToSeveral(
  call: RoutedCall,
  ticket: Ticket,
  placements: readonly Placement[],
  context: AdmitContext,
): Promise<Admitted> {
  // A call that does not want to wait is told by the first group that is full.
  const mayTry = ticket.maxWaitMs !== 0;
  for (let openings = 0; ; openings += 1) {
    if (mayTry && !placements.some(hasQueuedRecently)) {
      const tried = await tryAll(call, ticket, placements, context);
      if (tried !== null) return tried;
    }
    const taken = await takeInOrder(call, ticket, placements, context);
    if (taken.kind !== 'declined') return taken;
    const { group } = taken.placement;
    const pool = poolSource(context.env, taken.placement, context.table);
    const until = waitsUntil(ticket, taken.placement);
    const waited = await untilOpened(pool, { ...context, until, openings });
    if (waited.kind === 'left') return LEFT;
    if (waited.kind === 'over') return rejected(stillPaused(group));
  }
}

/** Null: some group has no room now, and nothing is held. */
async function tryAll(
  call: RoutedCall,
  ticket: Ticket,
  placements: readonly Placement[],
  context: AdmitContext,
): Promise<Admitted | null> {
  const round = ticket.rounds.begin();
  const manner: Manner = { ...round, isTry: true, waitsElsewhere: false, holdsNarrower: false };
  const tries = await Promise.all(
    placements.map((placement) => admitOne(call, ticket, placement, manner, context)),
  );
  const granted = tries.filter((one) => one.kind === 'admitted');
  if (granted.length === placements.length) {
    return { kind: 'admitted', admission: admissionOf(granted, context) };
  }
  giveBack(granted, context);
  for (const [index, one] of tries.entries()) {
    if (one.kind === 'declined') noteQueued(one.placement);
    else if (one.kind !== 'admitted') return withRatesToTell(one, placements[index], granted);
  }
  return null;
}

/** Takes the slots one after the other, and gives all of them back if one is not to be had. */
async function takeInOrder(
  call: RoutedCall,
  ticket: Ticket,
  placements: readonly Placement[],
  context: AdmitContext,
): Promise<Admitted | Declined> {
  const round = ticket.rounds.begin();
  const held: One[] = [];
  const signal = new PlainAbort(context.signal);
  for (const [index, placement] of placements.entries()) {
    const isLast = index === placements.length - 1;
    const manner = { ...round, isTry: false, waitsElsewhere: !isLast, holdsNarrower: index > 0 };
    const one = await admitOne(call, ticket, placement, manner, { ...context, signal });
    if (one.kind !== 'admitted') {
      giveBack(held, context);
      if (one.kind === 'left' && !context.signal.aborted) return takenAway();
      return withRatesToTell(one, placement, held);
    }
    if (!isLast && one.by.kind === 'leased') one.by.lease.keep(() => signal.abort());
    held.push(one);
  }
  for (const { lease } of leasesOf(held.slice(0, -1))) context.ctx.waitUntil(lease.confirm());
  return { kind: 'admitted', admission: admissionOf(held, context) };
}

/** Nothing was sent: what was only held for a while costs nobody anything. */
function giveBack(held: readonly One[], { ctx }: AdmitContext): void {
  for (const one of held) ctx.waitUntil(end(one, 'unused'));
}

function admissionOf(
  held: readonly One[],
  { env, table, members, names }: AdmitContext,
): Admission {
  const leases = leasesOf(held);
  const granting = held.find(({ placement }) => placement.group === members?.group);
  // What a member says is about its group alone: other groups are of other places.
  const ofProvider =
    granting === undefined ? held.filter(({ placement }) => placement.isOfProvider) : [granting];
  return {
    member: granting?.by.kind === 'leased' ? granting.by.member : null,
    placements: held.map(({ placement }) => placement),
    leaseIds: leases.map(({ lease }) => lease.leaseId),
    hasWaiters: leases.some(({ lease }) => lease.hasWaiters),
    rates: ratesToTell(limitedOf(held)),
    reportAnswer: (status, notes) => {
      for (const { lease } of leases) lease.reportAnswer(status, notes);
    },
    reportServed: (warning, { isMistake, blamed = [] }) => {
      // Of a group that the call bypasses there is nobody to tell.
      const warned = ofProvider[0]?.placement;
      for (const { lease, placement } of leases) {
        const isWarned = warning !== null && placement === warned;
        const isProof = blamed.length > 0 && placement === granting?.placement;
        if (!isWarned && !isProof && !lease.wantsServed) continue;
        const signal = {
          ...(isWarned ? warning : SERVED),
          ...(isMistake === true && { isMistake }),
          ...(isProof && { blamed }),
        };
        lease.report(signal, false);
      }
    },
    report: (signal, scope, isRepeat) => {
      // Narrow first. What the whole upstream says is about the widest group that stands for it.
      const about = scope === 'upstream' ? ofProvider.at(-1) : ofProvider[0];
      if (about?.by.kind !== 'leased') return;
      const read = names === null ? {} : { names: names.refused };
      const reach = names?.reachOf(scope) ?? scope;
      // The next calls read their names before they go out, so their refusals can be told apart.
      if (reach !== scope || names?.isUnread === true) {
        noteByNames(poolName(about.placement.group, about.placement.partition));
      }
      about.by.lease.report({ ...signal, scope: reach, ...read }, isRepeat);
    },
    keep: (onRevoked) => {
      for (const { lease } of leases) lease.keep(onRevoked);
    },
    moveToAccount: (to, account) => {
      const own = leases.find(({ placement }) => placement.isUnproved);
      if (own?.lease instanceof LeaseHolder) {
        const { partition, assumed } = to;
        const tenant = { tenant: account };
        own.lease.moveTo(poolSource(env, to, table), { partition, assumed, ...tenant });
      }
    },
    forRun: async (status) => {
      const all = await Promise.all(
        leases.map(async ({ placement: { config }, lease }) => {
          const heldAt = await lease.forRun();
          if (heldAt === null) return null;
          const { jurisdiction = null, location = null } = config ?? {};
          return { held: heldAt, jurisdiction, location, status };
        }),
      );
      const there = all.filter((one) => one !== null);
      return there.length === all.length && all.length > 0 ? there : null;
    },
    letGo: () => {
      for (const { by } of held) {
        if (by.kind === 'leased') by.lease.letGo();
        else by.end();
      }
    },
    release: async (outcome, settle) => {
      await Promise.all(
        held.map((one) => end(one, outcomeFor(ofProvider.includes(one), outcome), settle)),
      );
    },
  };
}

/** Room in the limits of one group of a call. */
interface Limited {
  readonly group: string;
  readonly rates: readonly RateRoom[];
}

function limitedOf(held: readonly One[]): Limited[] {
  return held.flatMap(({ placement: { group }, by }) =>
    by.kind === 'leased' && by.rates !== undefined ? [{ group, rates: by.rates }] : [],
  );
}

/** Picks the limits that a caller is told of: its own before those that it shares. */
function ratesToTell(limited: readonly Limited[]): readonly RateRoom[] {
  return (limited.find(({ group }) => group.startsWith(KEY_PREFIX)) ?? limited[0])?.rates ?? [];
}

/** Has a caller that a group rejects told of the same limits as one that is served. `held`: what it was granted. */
function withRatesToTell<T extends Exclude<AdmittedOne, One>>(
  one: T,
  placement: Placement | undefined,
  held: readonly One[],
): T {
  if (one.kind !== 'rejected' || placement === undefined) return one;
  const { rates = [] } = one;
  const own = rates.length === 0 ? [] : [{ group: placement.group, rates }];
  return { ...one, rates: ratesToTell([...limitedOf(held), ...own]) };
}

/** The leases among what a call holds, narrow first: fewer where it bypasses a group. */
function leasesOf(
  held: readonly One[],
): readonly { readonly placement: Placement; readonly lease: HeldLease }[] {
  return held.flatMap(({ placement, by }) =>
    by.kind === 'leased' ? [{ placement, lease: by.lease }] : [],
  );
}

/** Gives back what a call holds of one group. */
async function end({ placement, by }: One, outcome: Outcome, settle?: Settle): Promise<void> {
  switch (by.kind) {
    case 'leased':
      return by.lease.release(outcome, settle?.(placement));
    case 'bypass':
      return by.end();
  }
}

/** Narrows an outcome: what the provider says is about the groups that stand for it, never about the caller's own. */
function outcomeFor(isOfProvider: boolean, outcome: Outcome): Outcome {
  return outcome === 'failed' && !isOfProvider ? 'success' : outcome;
}

function hasQueuedRecently({ group, partition }: Placement): boolean {
  const name = poolName(group, partition);
  const at = queuedAt.get(name);
  if (at === undefined) return false;
  if (steadyClock.now() - at < QUEUED_RECENTLY_MS) return true;
  queuedAt.delete(name);
  return false;
}

function noteQueued({ group, partition }: Placement): void {
  if (queuedAt.size >= QUEUED_MAX) queuedAt.clear();
  queuedAt.set(poolName(group, partition), steadyClock.now());
}

function stillPaused(group: string): ErrorReply {
  return { reason: 'paused', message: `The group ${group} is paused.` };
}

function takenAway(): Admitted {
  const message = 'A slot that the call held while it waited was taken away by the operator.';
  return rejected({ reason: 'limiter_unavailable', message });
}

function tooMany(placements: readonly Placement[]): ErrorReply {
  const names = placements.map(({ group }) => group).join(', ');
  const message = `The call belongs to ${placements.length} groups (${names}), and ${GROUPS_PER_CALL_MAX} is the most.`;
  return { reason: 'too_many_groups', message };
}
