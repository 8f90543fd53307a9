import { after, earlier, type InstantMs } from './words/ids.ts';
import {
  COMES_BACK_MS,
  EXTENSIONS_MAX,
  COOLDOWN_MAX_MS,
  LEASE_TTL_MS,
  MOVE_SETTLE_MS,
  SETTLE_MS,
  type GroupSettings,
} from './words/settings.ts';
import { keepProbes } from './parts/breaker.ts';
import { rebaseControls, type Controls } from './controls.ts';
import type { Effect, GroupEvent } from './events.ts';
import { addLease, endLostNesting } from './leases.ts';
import { emptyState, type GroupState, type Lease, type LeaseRow } from './state.ts';

/**
 * Recovers the state of a group after a reset, from its rows.
 *
 * Renewals were never written, so every lease may be alive: each is extended, and that is written until its
 * first renewal. Slots that were cooling down stay down. If there were leases, there may have been waiters,
 * who come back within `SETTLE_MS` and are put in their old order before anything is granted. What tenants
 * had had is forgotten, but for what they hold. What a clock that was ahead has written is brought back to
 * now.
 */
export function recover(
  settings: GroupSettings,
  rows: readonly LeaseRow[],
  controls: Controls,
  firstAttachment: number,
  now: InstantMs,
): { readonly state: GroupState; readonly effects: Effect[] } {
  rebaseControls(controls, settings, now);
  const state = emptyState(settings, firstAttachment, controls);
  const effects: Effect[] = [];
  for (const row of rows) {
    const { coolingUntil } = row;
    const lease = leaseFrom(row, state.nextAttachment++, now);
    addLease(state, lease, now);
    // Its holder has let go: an ask or a resumption that comes late must not take it up again.
    if (coolingUntil !== null) state.tombstones.add(lease.id, now);
    const isNews = coolingUntil === null && lease.extendedUntil !== row.extendedUntil;
    if (isNews) effects.push({ kind: 'save', lease });
  }
  endLostNesting(state, now, effects);
  keepProbes(controls.breaker, (id) => state.leases.has(id));
  keepReserved(state);
  if (rows.length > 0) {
    state.grantsFrom = after(now, SETTLE_MS);
    state.drainsFrom = now;
  }
  return { state, effects };
}

/** Makes the lease that a row tells of. Its holder may live, and gets the time to come back in. */
function leaseFrom(row: LeaseRow, attachment: number, now: InstantMs): Lease {
  const { coolingUntil, ...rest } = rebasedRow(row, now);
  const extension = extensionOf(rest, now);
  return {
    ...rest,
    ...(coolingUntil === null ? extension : { extendedUntil: null, extensions: 0 }),
    until: coolingUntil ?? extension.extendedUntil,
    attachment,
    waitsElsewhere: false,
    callableAt: rest.grantedAt,
    slotsAtGrant: 0,
    hasAnswer: false,
    isRefused: false,
    chargedMs: now - rest.grantedAt,
    decision: null,
  };
}

/**
 * The first reset since the holder was heard gives the lease one more TTL. At a later one the rest of that may
 * have passed in a freeze, which no turn lived to see: who has too little time left to come back gets another.
 * A dead holder's lease ends all the same, because that happens only so often.
 */
function extensionOf(row: Pick<LeaseRow, 'extendedUntil' | 'extensions'>, now: InstantMs) {
  const { extendedUntil, extensions } = row;
  if (extendedUntil !== null) {
    const isEnough = extendedUntil >= after(now, COMES_BACK_MS);
    if (isEnough || extensions >= EXTENSIONS_MAX) return { extendedUntil, extensions };
  }
  return { extendedUntil: after(now, LEASE_TTL_MS), extensions: extensions + 1 };
}

/** The row of a lease. */
export function rowOf(lease: Lease): LeaseRow {
  const { id, ticketId, holder, lane, slots, grantedAt, phase } = lease;
  const { extendedUntil, extensions, reserved, nested } = lease;
  const coolingUntil = phase === 'cooling' ? lease.until : null;
  return {
    id,
    ticketId,
    holder,
    lane,
    slots,
    grantedAt,
    phase,
    extendedUntil,
    extensions,
    coolingUntil,
    reserved,
    nested,
  };
}

/** Reserves for what is in flight alone: a call that was lost with its row must not count for ever. */
function keepReserved({ leases, controls }: GroupState): void {
  let usd = 0;
  for (const { reserved } of leases.values()) usd += reserved?.usd ?? 0;
  controls.spend.reservedUsd = usd;
}

/** Counts the leases that another instance has granted: they are the same holders'. */
export function takeOver(
  state: GroupState,
  { handed, isNew, firstAttachment }: Extract<GroupEvent, { kind: 'take_over' }>,
  now: InstantMs,
  effects: Effect[],
): void {
  state.nextAttachment = Math.max(state.nextAttachment, firstAttachment);
  for (const row of handed.leases) {
    if (state.leases.has(row.id) || state.tombstones.has(row.id)) continue;
    const lease = leaseFrom(row, state.nextAttachment++, now);
    addLease(state, lease, now);
    if (lease.phase === 'cooling') state.tombstones.add(lease.id, now);
    effects.push({ kind: 'save', lease });
  }
  endLostNesting(state, now, effects);
  if (isNew) {
    Object.assign(state.controls, handed.controls);
    rebaseControls(state.controls, state.settings, now);
    Object.assign(state.totals, handed.totals);
    state.isControlsDirty = true;
  }
  // Who waited there comes here at once, and nobody younger may take their turn meanwhile.
  state.grantsFrom = after(now, MOVE_SETTLE_MS);
}

/** The instants in the row of a lease. */
type RowInstants = Pick<Lease, 'grantedAt' | 'extendedUntil'> & {
  readonly coolingUntil: InstantMs | null;
};

/** Dates the row of a lease by the present clock: the one that wrote it may have been ahead, and set back. */
function rebasedRow<Row extends RowInstants>(row: Row, now: InstantMs): Row {
  const { grantedAt, coolingUntil, extendedUntil } = row;
  const within = (at: InstantMs | null, ms: number): InstantMs | null =>
    at === null ? null : earlier(at, after(now, ms));
  return {
    ...row,
    grantedAt: earlier(grantedAt, now),
    coolingUntil: within(coolingUntil, COOLDOWN_MAX_MS),
    extendedUntil: within(extendedUntil, LEASE_TTL_MS),
  };
}
