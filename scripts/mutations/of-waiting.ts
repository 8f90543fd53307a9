import type { Mutation } from './mutation.ts';

/** Who gets a slot, and when. */
export const GRANTING: readonly Mutation[] = [
  {
    name: 'admits one more than the limit',
    file: 'capacity.ts',
    find: 'if (slots > rampSlotsMax(pause, slotsMax, now)) {',
    replace: 'if (slots > rampSlotsMax(pause, slotsMax, now) + 1) {',
  },
  {
    name: 'asks only whether some slot is free, not whether all are',
    file: 'capacity.ts',
    find: 'const slots = slotsInUse + need.slots;',
    replace: 'const slots = slotsInUse + Math.min(1, need.slots);',
  },
  {
    name: 'counts a wide call as one slot',
    file: 'leases.ts',
    find: 'const slots = sign * lease.slots;',
    replace: 'const slots = sign * Math.min(1, lease.slots);',
  },
  {
    name: 'forgets to wake the next waiter',
    file: 'step.ts',
    find: '  pump(state, now, effects);\n  if (state.isControlsDirty)',
    replace: '  if (state.isControlsDirty)',
  },
  {
    name: 'grants while paused',
    file: 'capacity.ts',
    find: 'settings.paused || settings.slotsMax === 0',
    replace: 'settings.slotsMax === 0',
  },
  {
    name: 'does not wait for callers to come back after a reset',
    file: 'recover.ts',
    find: '    state.grantsFrom = after(now, SETTLE_MS);\n',
    replace: '',
  },
  {
    name: 'does not wait for callers to come back after a move',
    file: 'step.ts',
    find: 'Math.max(state.grantsFrom, after(now, MOVE_SETTLE_MS))',
    replace: 'state.grantsFrom',
  },
  {
    name: 'grants to waiters that nobody is parked behind',
    file: 'order.ts',
    find: 'waiter.sliceEndsAt === null || view.passedOver',
    replace: 'view.passedOver',
  },
  {
    name: 'orders by arrival at this instance',
    file: 'parts/queue.ts',
    find: 'a.age - b.age || a.sequence - b.sequence',
    replace: 'a.sequence - b.sequence',
  },
  {
    name: 'puts the newest first',
    file: 'parts/queue.ts',
    find: 'a.age - b.age || a.sequence - b.sequence',
    replace: 'b.age - a.age || b.sequence - a.sequence',
  },
];

/** Waiting, asking again and giving up. */
export const WAITING: readonly Mutation[] = [
  {
    name: 'queues callers that do not want to wait',
    file: 'refuse.ts',
    find: 'if (!ticket.wait) {',
    replace: 'if (ticket.slots < 0) {',
  },
  {
    name: 'lets the queue grow by one too many',
    file: 'refuse.ts',
    find: 'queueLength(queue) > queueLengthMax',
    replace: 'queueLength(queue) > queueLengthMax + 1',
  },
  {
    name: 'ignores the deadline of the caller',
    file: 'new-waiter.ts',
    find: 'Math.min(ticket.deadlineAt ?? Infinity, after(enqueuedAt, state.settings.timeoutMs))',
    replace: 'after(enqueuedAt, state.settings.timeoutMs)',
  },
  {
    name: 'ignores the time-out of the group',
    file: 'new-waiter.ts',
    find: 'Math.min(ticket.deadlineAt ?? Infinity, after(enqueuedAt, state.settings.timeoutMs))',
    replace: 'ticket.deadlineAt ?? Infinity',
  },
  {
    name: 'never drops an orphan',
    file: 'waiting.ts',
    find: 'waiter.sliceEndsAt === null && now >= waiter.orphanAt',
    replace: 'now < 0',
  },
  {
    name: 'leaves a parked ask unanswered at the end of its slice',
    file: 'waiting.ts',
    find: 'waiter.sliceEndsAt !== null && now >= waiter.sliceEndsAt',
    replace: 'now < 0',
  },
  {
    name: 'brings a ticket back that was rejected at the same instant',
    file: 'waiting.ts',
    find: "if (effects.some((effect) => 'ticketId' in effect && effect.ticketId === ticket.id)) return;",
    replace: '',
  },
  {
    name: 'sleeps past the deadline of a younger waiter',
    file: 'waiting.ts',
    find: 'Math.min(state.waitersDueAt, waiter.deadlineAt, waiter.sliceEndsAt ?? waiter.orphanAt)',
    replace:
      'state.waitersDueAt === NEVER ? Math.min(waiter.deadlineAt, waiter.sliceEndsAt ?? waiter.orphanAt) : state.waitersDueAt',
  },
  {
    name: 'keeps a timer for leases that are gone',
    file: 'step.ts',
    find: 'state.leases.size > 0 ? state.leasesDueAt : Infinity',
    replace: 'state.leasesDueAt',
  },
  {
    name: 'sleeps past the end of the settle time',
    file: 'step.ts',
    find: 'state.waitersDueAt, settled, room, tried)',
    replace: 'state.waitersDueAt, settled + 1, room + 1, tried)',
  },
  {
    name: 'forgets that a ticket was cancelled',
    file: 'step.ts',
    find: '  bury(state, event.ticketId, now);\n',
    replace: '',
  },
  {
    name: 'keeps a cancelled ticket in the queue',
    file: 'step.ts',
    find: 'if (waiter !== undefined) dismiss(state, waiter, now, effects);\n  for',
    replace: 'for',
  },
  {
    name: 'lets nobody hear that the attempt they wait for has ended',
    file: 'leaving.ts',
    find: "  effects.push({ kind: 'gone', ticketId: waiter.ticket.id });\n",
    replace: '',
  },
];
