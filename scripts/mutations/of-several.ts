import type { Mutation } from './mutation.ts';

/** Calls that belong to several groups. */
export const SEVERAL: readonly Mutation[] = [
  {
    name: 'lets a try wait',
    file: 'waiting.ts',
    find: 'ticket.isTry || (isStopped(state, now) && ticket.holdsNarrower)',
    replace: 'isStopped(state, now) && ticket.holdsNarrower',
  },
  {
    name: 'levels a tenant whose try was declined',
    file: 'waiting.ts',
    find: '  if (ticket.isTry) unlevel();\n',
    replace: '',
  },
  {
    name: 'counts a declined try as refused',
    file: 'leaving.ts',
    find: '  const isPaused = isStopped(state, now);\n',
    replace:
      '  const isPaused = isStopped(state, now);\n  state.totals.rejected.busy = (state.totals.rejected.busy ?? 0) + 1;\n',
  },
  {
    name: 'leaves a declined try in the queue',
    file: 'leaving.ts',
    find: '  dequeue(state.queue, waiter);\n  if (!waiter.ticket.isTry)',
    replace: '  if (!waiter.ticket.isTry)',
  },
  {
    name: 'keeps narrower slots through a pause that is there',
    file: 'waiting.ts',
    find: 'ticket.isTry || (isStopped(state, now) && ticket.holdsNarrower)',
    replace: 'ticket.isTry',
  },
  {
    name: 'keeps narrower slots through a pause that begins',
    file: 'step.ts',
    find: 'else if (settings.paused && ticket.holdsNarrower) decline(state, waiter, now, effects);',
    replace: '',
  },
  {
    name: 'lets calls that wait elsewhere hold everything',
    file: 'order.ts',
    find: 'slotsWaitingElsewhere > 0 && slotsWaitingElsewhere + slots > quarter',
    replace: 'slotsWaitingElsewhere < 0 && slots > quarter',
  },
  {
    name: 'lets no call of a small group wait elsewhere',
    file: 'order.ts',
    find: 'slotsWaitingElsewhere > 0 && slotsWaitingElsewhere + slots > quarter',
    replace: 'slotsWaitingElsewhere + slots > quarter',
  },
  {
    name: 'lets one that may not wait elsewhere block the others',
    file: 'order.ts',
    find: '    view.barred.add(cap);',
    replace: "    if (cap === 'elsewhere') return undefined;\n    view.barred.add(cap);",
  },
  {
    name: 'lets narrow calls that wait elsewhere overtake a wide one',
    file: 'order.ts',
    find: "!view.barred.has('elsewhere') && !wouldHoldTooMuch(view.state, 1)",
    replace: '!wouldHoldTooMuch(view.state, ticket.slots)',
  },
  {
    name: 'ignores that a call has all its slots now',
    file: 'leases.ts',
    find: '  lease.waitsElsewhere = false;\n  state.slotsWaitingElsewhere -= lease.slots;\n',
    replace: '',
  },
  {
    name: 'counts a confirmation twice',
    file: 'leases.ts',
    find: '  if (!lease.waitsElsewhere) return false;\n',
    replace: '',
  },
  {
    name: 'lets a slot that cools down wait elsewhere',
    file: 'leases.ts',
    find: '  endWaitElsewhere(state, lease);\n  chargeTo(',
    replace: '  chargeTo(',
  },
  {
    name: 'keeps the place of an earlier attempt',
    file: 'waiting.ts',
    find: 'known !== undefined && known.leaseId !== leaseId',
    replace: 'known !== undefined && known.leaseId === null',
  },
];

/** Nested calls, groups that drain, dry runs. */
export const MODES: readonly Mutation[] = [
  {
    name: 'lets a call wait for itself',
    file: 'nesting.ts',
    find: "parent === undefined || parent.phase === 'cooling' ? []",
    replace: "parent === undefined || parent.phase !== 'cooling' ? []",
  },
  {
    name: 'refuses nested calls that should pass',
    file: 'waiting.ts',
    find: "if (state.settings.nested === 'reject' || state.settings.isDryRun) return false;",
    replace: 'if (state.settings.slotsMax >= 0) return false;',
  },
  {
    name: 'lets nested calls pass that should be refused',
    file: 'waiting.ts',
    find: "state.settings.nested === 'reject' || state.settings.isDryRun",
    replace: 'state.settings.isDryRun',
  },
  {
    name: 'takes a slot for a nested call that passes',
    file: 'waiting.ts',
    find: 'grant(state, waiter, 0, now, effects, {',
    replace: 'grant(state, waiter, ticket.slots, now, effects, {',
  },
  {
    name: 'lets any number pass on one lease',
    file: 'nesting.ts',
    find: 'else slotsOfOthers += nested?.slots ?? 0;',
    replace: '',
  },
  {
    name: 'lets a chain of calls pass on one lease',
    file: 'nesting.ts',
    find: 'parent.nested === null ? parent : state.leases.get(passesOn(parent) ?? parent.id)',
    replace: 'parent',
  },
  {
    name: 'lets a call pass on the slots of another caller',
    file: 'nesting.ts',
    find: 'if (parent.holder.caller !== holder.caller) return null;\n',
    replace: '',
  },
  {
    name: 'lets calls pass on a nested one that has outlived its parent',
    file: 'nesting.ts',
    find: 'root === undefined || root.nested !== null',
    replace: 'root === undefined',
  },
  {
    name: 'keeps a call waiting for the one that waits for it',
    file: 'nesting.ts',
    find: 'passages.length > 0 && passages.every(',
    replace: 'passages.length < 0 && passages.every(',
  },
  {
    name: 'forgets that a nested call has ended',
    file: 'leases.ts',
    find: '  state.leases.delete(lease.id);\n  forgetNested(state, lease);',
    replace: '  state.leases.delete(lease.id);',
  },
  {
    name: 'never counts a nested call whose parent has ended',
    file: 'leases.ts',
    find: '    lease.slots = slots;\n',
    replace: '',
  },
  {
    name: 'never counts a nested call whose parent lapsed',
    file: 'leases.ts',
    find: '      endNesting(state, lease.id, now, effects);\n',
    replace: '',
  },
  {
    name: 'gives back what a nested call was never charged',
    file: 'leases.ts',
    find: '    lease.chargedMs = now - lease.grantedAt;\n',
    replace: '',
  },
  {
    name: 'leaves a nested call on a parent that a reset has lost',
    file: 'recover.ts',
    find: '  endLostNesting(state, now, effects);\n',
    replace: '',
  },
  {
    name: 'lets a nested call pass that nobody waits behind',
    file: 'waiting.ts',
    find: 'sliceEndsAt === null ? null : findPassage(state, ticket)',
    replace: 'sliceEndsAt === now ? null : findPassage(state, ticket)',
  },
  {
    name: 'does not look who goes next once a nested call has passed',
    file: 'waiting.ts',
    find: 'while (passNested(state, now, effects));',
    replace: 'while (passNested(state, now, effects) && state.slotsInUse < 0);',
  },
  {
    name: 'cools down what a nested call never took',
    file: 'leases.ts',
    find: 'lease.slots === 0 ? 0 : cooldownMs(state, outcome, now)',
    replace: 'cooldownMs(state, outcome, now)',
  },
  {
    name: 'takes new calls while it drains',
    file: 'refuse.ts',
    find: 'if (!state.settings.isDraining || !isNew) return',
    replace: 'if (ticket.slots > 0) return',
  },
  {
    name: 'takes who was sent back for new while it drains',
    file: 'refuse.ts',
    find: 'ticket.enqueuedAt >= state.drainsFrom',
    replace: 'ticket.slots > 0',
  },
  {
    name: 'blocks in a dry run',
    file: 'waiting.ts',
    find: '  if (!state.settings.isDryRun) return;\n',
    replace: '  if (now > 0) return;\n',
  },
  {
    name: 'lets everybody pass without a dry run',
    file: 'waiting.ts',
    find: '  if (!state.settings.isDryRun) return;\n',
    replace: '',
  },
  {
    name: 'refuses in a dry run what it would refuse',
    file: 'waiting.ts',
    find: 'refusal !== null && !isDryRun',
    replace: 'refusal !== null',
  },
  {
    name: 'does not count who would have waited',
    file: 'waiting.ts',
    find: '  state.totals.wouldWait += 1;\n',
    replace: '',
  },
  {
    name: 'answers in a dry run who is not there',
    file: 'waiting.ts',
    find: 'if (waiter.sliceEndsAt !== null) letPass',
    replace: 'letPass',
  },
];
