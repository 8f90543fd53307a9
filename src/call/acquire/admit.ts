import { poolName } from '../../contract/pool-name.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { RateRoom } from '../../core/parts/rate-room.ts';
import { SERVED } from '../../core/words/signal.ts';
import { GROUPS_PER_CALL_MAX, type Placement, type RoutedCall } from '../../routing/placement.ts';
import { KEY_PREFIX } from '../../routing/key-groups.ts';
import type { Admission, CallTicket } from './admission.ts';
import {
  admitOne,
  endSlot,
  type AdmitContext,
  type AdmittedOne,
  type AdmittedSlot,
} from './admit-one.ts';
import { admitToSeveral, waitOf, type AdmittedToSeveral } from './admit-several.ts';
import { noteByNames } from '../call-names.ts';
import { LeaseHolder, type CallLease } from './lease-holder.ts';
import { isUnverified, poolSource } from './pools.ts';
import { ownOrShared } from './shared-partition.ts';
import type { Waited } from './waited.ts';
import { LEFT, rejected } from '../result.ts';

export type Admitted =
  | { readonly kind: 'admitted'; readonly admission: Admission }
  | Exclude<AdmittedOne, { kind: 'admitted' | 'declined' }>;

/** Acquires the slots of a call in every group that it matches (`placed`), or returns a definite reason why not. */
export async function admit(
  call: RoutedCall,
  ticket: CallTicket,
  placed: readonly Placement[],
  outer: AdmitContext,
): Promise<Admitted> {
  const { env, table } = outer;
  const mayShare = table.snapshot.fullGroups.length > 0;
  const placements = mayShare
    ? await Promise.all(
        placed.map(async (one) => (isUnverified(env, one) ? one : ownOrShared(env, table, one))),
      )
    : placed;
  const [narrowest, ...wider] = placements;
  if (narrowest === undefined || placements.length > GROUPS_PER_CALL_MAX) {
    return rejected(tooMany(placements));
  }
  const context = outer.metering === null ? outer : { ...outer, billed: billedOf(placements) };
  if (wider.length > 0) {
    const several = await admitToSeveral(call, ticket, placements, context);
    if (several.kind === 'ended') return withRatesToReport(several);
    const { slots, waited } = several;
    return { kind: 'admitted', admission: admissionOf(slots, waited, context) };
  }
  const round = ticket.rounds.begin();
  const manner = { ...round, isTry: false, waitsElsewhere: false };
  const one = await admitOne(call, ticket, narrowest, manner, context);
  if (one.kind === 'admitted') {
    return { kind: 'admitted', admission: admissionOf([one], waitOf(one), context) };
  }
  return one.kind === 'declined' ? LEFT : one;
}

/**
 * The pool whose costs include a call: the narrowest that represents a provider. Limits of a key or a team apply in
 * addition.
 */
export function billedOf(placements: readonly Placement[]): Placement | null {
  return placements.find(({ isOfProvider }) => isOfProvider) ?? null;
}

function admissionOf(
  held: readonly AdmittedSlot[],
  waited: Waited | null,
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
    rates: ratesToReport(limitedOf(held)),
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
        held.map((one) => endSlot(one, outcomeFor(ofProvider.includes(one), outcome), settle)),
      );
    },
  };
}

/** Remaining rate limits of one group of a call. */
interface Limited {
  readonly group: string;
  readonly rates: readonly RateRoom[];
}

function limitedOf(held: readonly AdmittedSlot[]): Limited[] {
  return held.flatMap(({ placement: { group }, by }) =>
    by.kind === 'leased' && by.rates !== undefined ? [{ group, rates: by.rates }] : [],
  );
}

/** The limits to report to a caller. Those of its key precede shared ones. */
function ratesToReport(limited: readonly Limited[]): readonly RateRoom[] {
  return (limited.find(({ group }) => group.startsWith(KEY_PREFIX)) ?? limited[0])?.rates ?? [];
}

/** Reports the same limits for a rejected call as for a served one. */
function withRatesToReport({
  end,
  placement: { group },
  slots,
}: Extract<AdmittedToSeveral, { kind: 'ended' }>): Admitted {
  if (end.kind !== 'rejected') return end;
  const { rates = [] } = end;
  const own = rates.length === 0 ? [] : [{ group, rates }];
  return { ...end, rates: ratesToReport([...limitedOf(slots), ...own]) };
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

function tooMany(placements: readonly Placement[]): ErrorReply {
  const names = placements.map(({ group }) => `\`${group}\``).join(', ');
  const message = `This call matches ${placements.length} groups (${names}). The maximum is ${GROUPS_PER_CALL_MAX}.`;
  return { reason: 'too_many_groups', message };
}
