import type { Mutation } from './mutation.ts';

/** How leases begin, last and end. */
export const LEASES: readonly Mutation[] = [
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
    find: "  if (lease.phase === 'cooling') return;\n  noteStatus(",
    replace: '  noteStatus(',
  },
  {
    name: 'frees the slot at the disposal of an older answer',
    file: 'step.ts',
    find: '  if (lease.attachment !== event.attachment) return;\n',
    replace: '',
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
    name: 'counts time in which nobody could be heard',
    file: 'leases.ts',
    find: '    lease.until = after(lease.until, lostMs);\n',
    replace: '',
  },
  {
    name: 'starts the TTL of everybody anew after time in which nobody could be heard',
    file: 'step.ts',
    find: 'giveTimeBack(state, event.lostMs, effects);',
    replace: 'giveTimeBack(state, 45_000, effects);',
  },
  {
    name: 'forgets with a reset what was given back of an extension',
    file: 'leases.ts',
    find: '    lease.extendedUntil = lease.until;\n',
    replace: '',
  },
  {
    name: 'cools a slot down again for time in which nobody could be heard',
    file: 'leases.ts',
    find: "    if (lease.phase === 'cooling') continue;\n    lease.until = after",
    replace: '    lease.until = after',
  },
  {
    name: 'keeps a slot down until an instant that a clock which was ahead has written',
    file: 'rebase.ts',
    find: 'coolingUntil: within(coolingUntil, HOLD_MAX_MS)',
    replace: 'coolingUntil',
  },
  {
    name: 'stays paused until an instant that a clock which was ahead has written',
    file: 'rebase.ts',
    find: '  pause.until = instant(pause.until - aheadMs);\n',
    replace: '',
  },
  {
    name: 'gives a holder that resumes a smaller attachment after the clock was set back',
    file: 'step.ts',
    find: '(event.attachment ?? 0) + 1',
    replace: '0',
  },
  {
    name: 'ignores renewals',
    file: 'step.ts',
    find: '  prolong(lease, now, effects);\n  // A hold',
    replace: '  // A hold',
  },
  {
    name: 'remembers no ended attempt',
    file: 'parts/tombstones.ts',
    find: '    this.#recent.add(id);\n',
    replace: '',
  },
  {
    name: 'remembers ended attempts for ever',
    file: 'parts/tombstones.ts',
    find: 'this.#older = this.#recent;',
    replace: 'for (const one of this.#recent) this.#older.add(one);',
  },
  {
    name: 'forgets an ended attempt before its time is over',
    file: 'parts/tombstones.ts',
    find: 'this.#recent.has(id) || this.#older.has(id)',
    replace: 'this.#recent.has(id)',
  },
  {
    name: 'lets a generation of ended attempts last too short',
    file: 'parts/tombstones.ts',
    find: 'after(now, TOMBSTONE_TTL_MS)',
    replace: 'after(now, TOMBSTONE_TTL_MS / 2)',
  },
  {
    name: 'remembers ended attempts without end',
    file: 'parts/tombstones.ts',
    find: 'this.#recent.size >= TOMBSTONES_MAX / 2',
    replace: 'now < 0',
  },
  {
    name: 'remembers one ended attempt too many',
    file: 'parts/tombstones.ts',
    find: 'this.#recent.size >= TOMBSTONES_MAX / 2',
    replace: 'this.#recent.size > TOMBSTONES_MAX / 2',
  },
  {
    name: 'does not remember anew what ended again',
    file: 'parts/tombstones.ts',
    find: '    if (now >= this.#recentUntil ||',
    replace: '    if (this.has(id)) return;\n    if (now >= this.#recentUntil ||',
  },
  {
    name: 'does not let a lapsed lease be resumed',
    file: 'leases.ts',
    find: "if (phase === 'revoking') bury",
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
export const RECOVERY: readonly Mutation[] = [
  {
    name: 'does not extend leases after a reset',
    file: 'recover.ts',
    find: '{ extendedUntil: after(now, LEASE_TTL_MS), extensions',
    replace: '{ extendedUntil: after(now, 0), extensions',
  },
  {
    name: 'extends leases at every reset',
    file: 'recover.ts',
    find: 'if (isEnough || extensions',
    replace: 'if (extensions',
  },
  {
    name: 'extends leases at every reset that comes late',
    file: 'recover.ts',
    find: 'if (isEnough || extensions >= EXTENSIONS_MAX) return',
    replace: 'if (isEnough) return',
  },
  {
    name: 'extends a lease once, though its holder had no time to come back',
    file: 'recover.ts',
    find: 'extendedUntil >= after(now, COMES_BACK_MS)',
    replace: 'extendedUntil > 0',
  },
  {
    name: 'counts the extensions of before the holder was heard',
    file: 'leases.ts',
    find: '    lease.extensions = 0;\n',
    replace: '',
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
    find: 'until: coolingUntil ?? extension.extendedUntil,',
    replace: 'until: coolingUntil === null ? extension.extendedUntil : now,',
  },
  {
    name: 'gives a slot that cools down back to its old holder',
    file: 'recover.ts',
    find: 'if (coolingUntil !== null) bury(state, lease.id, now);',
    replace: '',
  },
];
