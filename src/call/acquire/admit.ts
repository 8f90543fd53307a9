import { poolName } from '../../contract/pool-name.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import { SERVED } from '../../core/words/signal.ts';
import type { Placement, RoutedCall } from '../../routing/placement.ts';
import { PlainAbort, steadyClock } from '../../runtime/async.ts';
import { BoundedMap } from '../../core/parts/bounded-map.ts';
import { noteByNames } from '../plan/call-names.ts';
import {
  rejected,
  tooManyBytes,
  type CallerLeft,
  type Moved,
  type Rejected,
} from '../results/result.ts';
import { bodyBudget } from '../request/body.ts';
import type { Candidate } from '../plan/plan.ts';
import type { Admission, CallTicket } from './admission.ts';
import { admitOne, endSlot, type AdmittedSlot } from './admit-one.ts';
import type { AdmitContext } from './slot-request.ts';
import { askGroups, ratesToReport, type AllSlots } from './ask-groups.ts';
import { LeaseHolder, type CallLease } from './lease-holder.ts';
import { poolSource } from './pools.ts';

/** Acquires the slots of a call in all its groups, and decides whether it may queue with its body. */

type Admitted =
  | { readonly kind: 'admitted'; readonly admission: Admission }
  | Rejected
  | Moved
  | CallerLeft;

/** Acquires the slots of a call in every group that it matches, or returns a definite reason why not. */
async function admit(
  call: RoutedCall,
  ticket: CallTicket,
  placed: readonly Placement[],
  context: AdmitContext,
): Promise<Admitted> {
  const { ctx, metering } = context;
  // Aborts when a slot that the call holds is revoked while the call waits for another one.
  const revoked = placed.length > 1 ? new PlainAbort(context.signal) : null;
  const signal = revoked ?? context.signal;
  const all = await askGroups<AdmittedSlot, Moved | CallerLeft>(call, ticket, placed, {
    what: 'call',
    call: context,
    ask: (placement, manner, placements) => {
      const billed = metering === null ? null : billedOf(placements);
      return admitOne(call, ticket, placement, manner, { ...context, signal, billed });
    },
    giveBack: ({ by }, full) => {
      if (by.kind === 'leased') ctx.waitUntil(by.lease.giveBack(full));
      else by.end();
    },
    keep: ({ by }, firstMs) => {
      if (by.kind === 'leased') by.lease.keep(() => revoked?.abort(), firstMs);
    },
    confirm: ({ by }) => {
      if (by.kind === 'leased') ctx.waitUntil(by.lease.confirm());
    },
  });
  if (all.kind === 'all') return { kind: 'admitted', admission: admissionOf(all, context) };
  const isRevoked = revoked?.aborted === true && !context.signal.aborted;
  return all.kind === 'left' && isRevoked ? revokedWhileQueued() : all;
}

function revokedWhileQueued(): Rejected {
  const message =
    'The operator revoked a slot that this call held while it was queued. Retry the call.';
  return rejected({ reason: 'limiter_unavailable', message });
}

/**
 * The pool whose costs include a call: the narrowest that represents a provider. Limits of a key or a team apply in
 * addition.
 */
export function billedOf(placements: readonly Placement[]): Placement | null {
  return placements.find(({ isOfProvider }) => isOfProvider) ?? null;
}

function admissionOf(
  { slots: held, waited }: Pick<AllSlots<AdmittedSlot>, 'slots' | 'waited'>,
  { env, table, members, names }: AdmitContext,
): Admission {
  const leases = leasesOf(held);
  const granting = held.find(({ placement }) => placement.group === members?.group);
  // A member's answer concerns its group alone, because other groups represent other upstreams.
  const ofProvider =
    granting === undefined ? held.filter(({ placement }) => placement.isOfProvider) : [granting];
  return {
    member: granting?.by.kind === 'leased' ? granting.by.member : null,
    placements: held.map(({ placement }) => placement),
    leaseIds: leases.map(({ lease }) => lease.leaseId),
    hasWaiters: leases.some(({ lease }) => lease.hasWaiters),
    rates: ratesToReport(held),
    waited,
    reportAnswer: (status, notes) => {
      for (const { lease } of leases) lease.reportAnswer(status, notes);
    },
    reportServed: (warning, { isMistake, blamed = [] }) => {
      // A group that the call bypasses has no lease to report to.
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
      // Narrowest first. A signal about the whole upstream goes to the widest group that represents it.
      const about = scope === 'upstream' ? ofProvider.at(-1) : ofProvider[0];
      if (about?.by.kind !== 'leased') return;
      const read = names === null ? {} : { names: names.refused };
      const reach = names?.reachOf(scope) ?? scope;
      // The next calls read their names before they are sent, so that their refusals can be distinguished.
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
        own.lease.moveTo(poolSource(env, to, table), to, account);
      }
    },
    forRun: async (status) => {
      const all = await Promise.all(
        leases.map(async ({ placement: { config }, lease }) => {
          const heldAt = await lease.forRun();
          if (heldAt === null) return null;
          const { jurisdiction = null, location = null } = config ?? {};
          return { ...heldAt, jurisdiction, location, status };
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
        held.map((one) => endSlot(one, outcomeFor(ofProvider.includes(one), outcome), settle)),
      );
    },
  };
}

/** The leases of a call, narrowest group first. There are fewer than groups if it bypasses one. */
function leasesOf(
  held: readonly AdmittedSlot[],
): readonly { readonly placement: Placement; readonly lease: CallLease }[] {
  return held.flatMap(({ placement, by }) =>
    by.kind === 'leased' ? [{ placement, lease: by.lease }] : [],
  );
}

/** Narrows an outcome. A provider's failure counts for the groups that represent it, and never for the caller's own. */
function outcomeFor(isOfProvider: boolean, outcome: LeaseOutcome): LeaseOutcome {
  return outcome === 'failed' && !isOfProvider ? 'success' : outcome;
}

/** Minimum time that a call may wait. After it the call is certainly queued, and not only delayed by the network. */
const ASKING_MS = 500;

/**
 * How long a call may queue if there is no room for its body. A small body takes room from other bodies that have to be
 * read. A large one only does so while another large one arrives, and it took long to arrive itself.
 */
const SMALL_PATIENCE_MS = 2_000;
const LARGE_PATIENCE_MS = 30_000;

/**
 * Maximum small bodies that wait without room. At least half of the room for in-transit bodies stays free for calls
 * that do not queue.
 */
const LINGERING_MAX = 16;

/** How often each of them checks whether there is room. */
const LOOK_MS = 250;
/** How long one counts without such a check. After that its request has died. */
const LOST_AFTER_MS = 2_000;

/**
 * How long a pool counts as saturated after one of its calls was seen to queue. The next ones are rejected immediately,
 * to leave room for calls of other pools.
 */
const SATURATED_MS = 2_000;
const SATURATED_MAX = 1_000;

/** When a call of each pool was last seen to queue, as far as this isolate knows. */
const seenWaitingAt = new BoundedMap<string, number>(SATURATED_MAX);

/** Small bodies that queue without room, and when each last checked for it. */
const lingering = new Map<BodyWaitTime, number>();

/**
 * Acquires the slots of a call. It queues with its body only if there is room. Lack of room rejects nothing else: a
 * call that need not queue is served in any case.
 */
export async function admitWithBody(
  { call, routed, placements }: Candidate,
  { ticket }: { readonly ticket: CallTicket },
  context: AdmitContext,
): Promise<Admitted> {
  const { body } = call;
  const [narrowest] = placements;
  const pool = narrowest === undefined ? '' : poolName(narrowest.group, narrowest.partition);
  // A call that does not allow queueing is decided immediately and needs no room.
  if (ticket.maxWaitMs === 0 || body.rest(pool)) {
    const admitted = await admit(routed, ticket, placements, context);
    body.move();
    return admitted;
  }
  if (body.isSmall && isSaturated(pool)) return tooManyBytes();
  const patience = new BodyWaitTime(call, pool);
  const signal = new PlainAbort(context.signal, patience.over);
  const admitted = await admit(routed, ticket, placements, { ...context, signal });
  patience.end();
  body.move();
  return admitted.kind === 'left' && patience.over.aborted ? tooManyBytes() : admitted;
}

function isSaturated(pool: string): boolean {
  return steadyClock.now() - (seenWaitingAt.get(pool) ?? -Infinity) < SATURATED_MS;
}

/** How long a call may queue with a body for which there is no room. */
class BodyWaitTime {
  readonly #call: Candidate['call'];
  readonly #pool: string;
  readonly #since = steadyClock.now();
  readonly over = new PlainAbort();
  #callOff: () => void;

  constructor(call: Candidate['call'], pool: string) {
    this.#call = call;
    this.#pool = pool;
    this.#callOff = call.after(LOOK_MS, () => this.#look());
  }

  end(): void {
    this.#callOff();
    lingering.delete(this);
  }

  #look(): void {
    const { body, after } = this.#call;
    if (body.rest(this.#pool)) return this.end();
    if (!this.#mayKeepWaiting(body.isSmall)) return this.over.abort();
    this.#callOff = after(LOOK_MS, () => this.#look());
  }

  #mayKeepWaiting(isSmall: boolean): boolean {
    const now = steadyClock.now();
    const waitedMs = now - this.#since;
    if (waitedMs < ASKING_MS) return true;
    seenWaitingAt.set(this.#pool, now);
    if (!isSmall) return waitedMs < LARGE_PATIENCE_MS || !bodyBudget.isLargeWaiting;
    for (const [one, seenAt] of lingering) {
      if (now - seenAt > LOST_AFTER_MS) lingering.delete(one);
    }
    const hasPlace = lingering.has(this) || lingering.size < LINGERING_MAX;
    if (hasPlace) lingering.set(this, now);
    return hasPlace && waitedMs < SMALL_PATIENCE_MS;
  }
}
