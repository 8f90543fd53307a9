import { keepProbes } from './breaker.ts';
import type { Controls } from './controls.ts';
import type { Effect } from './events.ts';
import { after, type InstantMs } from './ids.ts';
import { addLease, bury } from './leases.ts';
import { LEASE_TTL_MS, SETTLE_MS, type GroupSettings } from './settings.ts';
import { emptyState, type GroupState, type Lease } from './state.ts';

/** A lease as its row tells it: an expiry is not in there, because renewals are not written. */
export type LeaseRow = Pick<
  Lease,
  | 'id'
  | 'ticketId'
  | 'holder'
  | 'lane'
  | 'slots'
  | 'grantedAt'
  | 'extendedUntil'
  | 'phase'
  | 'reserved'
> & {
  /** End of the cool-down of a `cooling` lease. */
  readonly coolingUntil: InstantMs | null;
};

/**
 * The state of a group after a reset, from its rows.
 *
 * Renewals were never written, so every lease may be alive: each gets one more TTL, written once, so
 * that a later reset does not prolong a dead holder's lease again; its first renewal clears that. Slots
 * that were cooling down stay down. If there were leases, there may have been waiters, who come back
 * within `SETTLE_MS` and are put in their old order before anything is granted. What tenants had had is
 * forgotten, but for what they hold.
 */
export function recover(
  settings: GroupSettings,
  rows: readonly LeaseRow[],
  controls: Controls,
  firstAttachment: number,
  now: InstantMs,
): { readonly state: GroupState; readonly effects: Effect[] } {
  const state = emptyState(settings, firstAttachment, controls);
  const effects: Effect[] = [];
  for (const row of rows) {
    const { coolingUntil, ...rest } = row;
    const extendedUntil = row.extendedUntil ?? after(now, LEASE_TTL_MS);
    const lease: Lease = {
      ...rest,
      until: coolingUntil ?? extendedUntil,
      extendedUntil: coolingUntil === null ? extendedUntil : null,
      attachment: state.nextAttachment++,
      waitsElsewhere: false,
      callableAt: row.grantedAt,
      slotsAtGrant: 0,
      hasAnswer: false,
      isRefused: false,
      chargedMs: now - row.grantedAt,
      decision: null,
    };
    addLease(state, lease, now);
    // Its holder has let go: an ask or a resumption that comes late must not take it up again.
    if (coolingUntil !== null) bury(state, lease.id, now);
    if (coolingUntil === null && row.extendedUntil === null) effects.push({ kind: 'save', lease });
  }
  keepProbes(controls.breaker, (id) => state.leases.has(id));
  keepReserved(state);
  if (rows.length > 0) {
    state.grantsFrom = after(now, SETTLE_MS);
    state.drainsFrom = now;
  }
  return { state, effects };
}

/** What is in flight counts with its estimate: a call that was lost with its row must not count for ever. */
function keepReserved({ leases, controls }: GroupState): void {
  let usd = 0;
  for (const { reserved } of leases.values()) usd += reserved?.usd ?? 0;
  controls.spend.reservedUsd = usd;
}
