/** One change to the core's source that a test must notice. */
export interface Mutation {
  readonly name: string;
  /** File under `src/core`. */
  readonly file: string;
  /** Text that occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
}

/** Who gets a slot, and when. */
const GRANTING: readonly Mutation[] = [
  {
    name: 'admits one more than the limit',
    file: 'state.ts',
    find: 'slotsInUse(state) + 1 <= state.settings.slotsMax',
    replace: 'slotsInUse(state) <= state.settings.slotsMax',
  },
  {
    name: 'forgets to wake the next waiter',
    file: 'step.ts',
    find: '  pump(state, now, effects);\n  return effects;',
    replace: '  return effects;',
  },
  {
    name: 'grants while paused',
    file: 'state.ts',
    find: '    !state.settings.paused &&\n',
    replace: '',
  },
  {
    name: 'does not wait for callers to come back after a reset',
    file: 'recover.ts',
    find: '  if (rows.length > 0) state.grantsFrom = after(now, SETTLE_MS);\n',
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
    file: 'queue.ts',
    find: 'queue.line.find((waiter) => waiter.sliceEndsAt !== null)',
    replace: 'queue.line[0]',
  },
  {
    name: 'orders by arrival at this instance',
    file: 'queue.ts',
    find: 'a.ticket.enqueuedAt - b.ticket.enqueuedAt || a.sequence - b.sequence',
    replace: 'a.sequence - b.sequence',
  },
  {
    name: 'puts the newest first',
    file: 'queue.ts',
    find: 'if (compareWaiters(before, waiter) <= 0) break;',
    replace: 'if (compareWaiters(before, waiter) > 0) break;',
  },
];

/** How leases begin, last and end. */
const LEASES: readonly Mutation[] = [
  {
    name: 'frees another slot with the second release',
    file: 'step.ts',
    find: `effects: Effect[]) {
  const lease = state.leases.get(event.leaseId);
  if (lease === undefined) {
    const waiter`,
    replace: `effects: Effect[]) {
  const lease = state.leases.get(event.leaseId) ?? [...state.leases.values()][0];
  if (lease === undefined) {
    const waiter`,
  },
  {
    name: 'ends a cool-down with the second release',
    file: 'step.ts',
    find: "if (lease.phase !== 'cooling') endLease(state, lease, event.outcome",
    replace: 'endLease(state, lease, event.outcome',
  },
  {
    name: 'frees the slot at the disposal of an older answer',
    file: 'step.ts',
    find: 'if (lease.attachment === event.attachment) endLease',
    replace: 'endLease',
  },
  {
    name: 'gives a new answer the attachment of the old one',
    file: 'leases.ts',
    find: '  lease.attachment = state.nextAttachment++;\n',
    replace: '',
  },
  {
    name: 'lets a caller begin with a lease that is about to lapse',
    file: 'leases.ts',
    find: '  lease.attachment = state.nextAttachment++;\n  prolong(lease, now, effects);',
    replace: '  lease.attachment = state.nextAttachment++;',
  },
  {
    name: 'prolongs a lease that was taken away',
    file: 'leases.ts',
    find: "if (lease.phase !== 'held') return;\n  lease.until",
    replace: "if (lease.phase === 'cooling') return;\n  lease.until",
  },
  {
    name: 'lets a caller begin with a lease that was taken away',
    file: 'waiting.ts',
    find: "if (lease?.phase === 'held') {",
    replace: 'if (lease !== undefined) {',
  },
  {
    name: 'ignores renewals',
    file: 'step.ts',
    find: 'if (lease !== undefined) prolong(lease, now, effects);',
    replace: 'if (lease === undefined) return;',
  },
  {
    name: 'remembers no ended attempt',
    file: 'leases.ts',
    find: '  state.tombstones.set(id, after(now, TOMBSTONE_TTL_MS));\n',
    replace: '',
  },
  {
    name: 'remembers ended attempts for ever',
    file: 'leases.ts',
    find: 'if (now < forgetAt && state.tombstones.size <= TOMBSTONES_MAX) break;',
    replace: 'break;',
  },
  {
    name: 'does not let a lapsed lease be resumed',
    file: 'leases.ts',
    find: "if (lease.phase === 'revoking') bury",
    replace: 'bury',
  },
  {
    name: 'has no cool-downs',
    file: 'leases.ts',
    find: 'if (downMs > 0) {',
    replace: 'if (downMs < 0) {',
  },
  {
    name: 'ends leases a millisecond late',
    file: 'leases.ts',
    find: '    if (now < lease.until) {',
    replace: '    if (now <= lease.until) {',
  },
  {
    name: 'sleeps past the end of a younger lease',
    file: 'leases.ts',
    find: 'state.leasesDueAt = instant(Math.min(state.leasesDueAt, at));',
    replace: 'if (state.leasesDueAt === NEVER) state.leasesDueAt = at;',
  },
];

/** What a reset leaves. */
const RECOVERY: readonly Mutation[] = [
  {
    name: 'does not extend leases after a reset',
    file: 'recover.ts',
    find: 'row.extendedUntil ?? after(now, LEASE_TTL_MS)',
    replace: 'row.extendedUntil ?? after(row.grantedAt, LEASE_TTL_MS)',
  },
  {
    name: 'extends leases at every reset',
    file: 'recover.ts',
    find: 'row.extendedUntil ?? after(now, LEASE_TTL_MS)',
    replace: 'after(now, LEASE_TTL_MS)',
  },
  {
    name: 'does not write the extension',
    file: 'recover.ts',
    find: "effects.push({ kind: 'save', lease });",
    replace: '{}',
  },
  {
    name: 'does not clear the extension at a renewal',
    file: 'leases.ts',
    find: 'if (lease.extendedUntil !== null) {',
    replace: 'if (lease.extendedUntil === 0) {',
  },
  {
    name: 'forgets cool-downs at a reset',
    file: 'recover.ts',
    find: 'until: coolingUntil ?? extendedUntil,',
    replace: 'until: coolingUntil === null ? extendedUntil : now,',
  },
  {
    name: 'gives a slot that cools down back to its old holder',
    file: 'recover.ts',
    find: 'if (coolingUntil !== null) bury(state, lease.id, now);',
    replace: '',
  },
];

/** Waiting, asking again and giving up. */
const WAITING: readonly Mutation[] = [
  {
    name: 'queues callers that do not want to wait',
    file: 'waiting.ts',
    find: 'if (!waiter.ticket.wait) {',
    replace: 'if (state.queue.line.length < 0) {',
  },
  {
    name: 'lets the queue grow by one too many',
    file: 'waiting.ts',
    find: 'state.queue.line.length > queueLengthMax',
    replace: 'state.queue.line.length > queueLengthMax + 1',
  },
  {
    name: 'ignores the deadline of the caller',
    file: 'waiting.ts',
    find: 'Math.min(ticket.deadlineAt ?? Infinity, after(enqueuedAt, state.settings.timeoutMs))',
    replace: 'after(enqueuedAt, state.settings.timeoutMs)',
  },
  {
    name: 'ignores the time-out of the group',
    file: 'waiting.ts',
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
    name: 'sleeps past the end of the settle time',
    file: 'step.ts',
    find: 'Math.min(state.leasesDueAt, state.waitersDueAt, settled)',
    replace: 'Math.min(state.leasesDueAt, state.waitersDueAt, settled + 1)',
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
    find: 'if (waiter !== undefined) dismiss(state, waiter, effects);\n  for',
    replace: 'for',
  },
  {
    name: 'lets nobody hear that the attempt they wait for has ended',
    file: 'waiting.ts',
    find: "  effects.push({ kind: 'gone', ticketId: waiter.ticket.id });\n",
    replace: '',
  },
];

/** Every mutation. A test that notices none of them would prove nothing. */
export const MUTATIONS: readonly Mutation[] = [...GRANTING, ...LEASES, ...RECOVERY, ...WAITING];
