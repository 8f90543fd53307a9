import type { Mutation } from './mutation.ts';

/** Bounds of the queue, eviction and hopeless waits. */
export const BOUNDS: readonly Mutation[] = [
  {
    name: 'does not bound what one tenant has waiting',
    file: 'refuse.ts',
    find: 'tenant.waiting > queueLengthMaxEach)',
    replace: 'tenant.waiting < 0)',
  },
  {
    name: 'does not bound what one agent has waiting',
    file: 'refuse.ts',
    find: 'agent.key !== NO_AGENT && agent.waiting > queueLengthMaxEachAgent',
    replace: 'false',
  },
  {
    name: 'bounds calls without an agent like one agent',
    file: 'refuse.ts',
    find: 'agent.key !== NO_AGENT && agent.waiting',
    replace: 'agent.waiting',
  },
  {
    name: 'evicts within the lane',
    file: 'parts/queue.ts',
    find: 'LANES.slice(LANES.indexOf(lane) + 1).toReversed()',
    replace: 'LANES.slice(LANES.indexOf(lane)).toReversed()',
  },
  {
    name: 'evicts from the best of the lower lanes',
    file: 'parts/queue.ts',
    find: 'LANES.slice(LANES.indexOf(lane) + 1).toReversed()',
    replace: 'LANES.slice(LANES.indexOf(lane) + 1)',
  },
  {
    name: 'evicts nobody',
    file: 'refuse.ts',
    find: "full?.of === 'group' ? worstBelow(state, waiter) : null",
    replace: 'null',
  },
  {
    name: 'evicts for a tenant that is over its own bound',
    file: 'refuse.ts',
    find: "full?.of === 'group' ? worstBelow",
    replace: 'full !== null ? worstBelow',
  },
  {
    name: 'evicts the oldest',
    file: 'refuse.ts',
    find: 'waiters.at(-1)',
    replace: 'waiters.at(0)',
  },
  {
    name: 'evicts from whoever has least waiting',
    file: 'refuse.ts',
    find: '|| waiters.length < most) continue;',
    replace: '|| (most > 0 && waiters.length > most)) continue;',
  },
  {
    name: 'evicts the older of two that are alike',
    file: 'refuse.ts',
    find: 'compareWaiters(worst, youngest) < 0',
    replace: 'compareWaiters(worst, youngest) > 0',
  },
  {
    name: 'lets hopeless calls wait',
    file: 'refuse.ts',
    find: '!isGuess && now + estimateMs > waiter.deadlineAt',
    replace: 'now < 0',
  },
  {
    name: 'refuses on a guess',
    file: 'refuse.ts',
    find: 'state.holdSamples < HOLD_SAMPLES_MIN || state.settings.paused',
    replace: 'state.settings.paused',
  },
  {
    name: 'calls a wait hopeless because of a pause',
    file: 'refuse.ts',
    find: 'state.holdSamples < HOLD_SAMPLES_MIN || state.settings.paused',
    replace: 'state.holdSamples < HOLD_SAMPLES_MIN',
  },
  {
    name: 'lets calls wait that never fit',
    file: 'refuse.ts',
    find: 'if (ticket.slots > most) return tooWide;',
    replace: 'if (ticket.slots < 0) return tooWide;',
  },
  {
    name: 'keeps those that never fit since the limit fell',
    file: 'step.ts',
    find: 'if (tooLarge !== null) turnAway(state, waiter, tooLarge, now, effects);\n    else if',
    replace: 'if',
  },
  {
    name: 'tells everybody to come back at the same time',
    file: 'estimate.ts',
    find: 'const spread = 1 - JITTER + 2 * JITTER * fraction(ticketId);',
    replace: 'const spread = fraction(ticketId) < 0 ? 0 : 1;',
  },
  {
    name: 'tells of more than a minute',
    file: 'estimate.ts',
    find: 'Math.min(most, Math.max(least, estimateMs))',
    replace: 'Math.max(least, estimateMs)',
  },
  {
    name: 'counts all of every other tenant as ahead',
    file: 'estimate.ts',
    find: 'for (let index = 0; index <= own; index += 1) {',
    replace: 'for (let index = 0; index < backlogs.length; index += 1) {',
  },
];
