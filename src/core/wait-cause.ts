import { blockOf, roomAt, slotsMaxAt } from './capacity.ts';
import { allows } from './parts/breaker.ts';
import type { InstantMs } from './words/ids.ts';
import { isUnderCap } from './order.ts';
import type { Waiter } from './parts/queue.ts';
import type { GroupState } from './state.ts';
import type { WaitCause } from './parts/decision-log.ts';

/** What keeps a waiter from being granted now. Of several causes the one that lasts whatever others do. */
export function waitCause(state: GroupState, waiter: Waiter, now: InstantMs): WaitCause {
  if (state.settings.paused) return 'operator_pause';
  const block = blockOf(state, now);
  if (block !== null) return block.reason === 'paused' ? 'upstream_pause' : 'breaker';
  if (!allows(state.controls.breaker, now)) return 'breaker';
  if (state.grantsFrom > now) return 'settling';
  if (!isUnderCap(state, waiter)) return 'cap';
  if (state.slotsInUse + waiter.need.slots > slotsMaxAt(state, now)) return 'slots';
  return roomAt(state, waiter.need, now) > now ? 'rates' : 'order';
}
