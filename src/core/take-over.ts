import type { Effect, GroupEvent } from './events.ts';
import { after, type InstantMs } from './words/ids.ts';
import { addLease, bury, endLostNesting } from './leases.ts';
import { rebaseControls } from './rebase.ts';
import { leaseFrom } from './recover.ts';
import { MOVE_SETTLE_MS } from './words/settings.ts';
import type { GroupState } from './state.ts';

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
    if (lease.phase === 'cooling') bury(state, lease.id, now);
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
