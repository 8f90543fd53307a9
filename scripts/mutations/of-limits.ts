import type { Mutation } from './mutation.ts';

/** Requests and tokens: what is taken, given back, settled and kept. */
export const LIMITS: readonly Mutation[] = [
  {
    name: 'refunds a start that happened',
    file: 'parts/rates.ts',
    find: "    if (limit.name === 'startsPerS') continue;\n",
    replace: '',
  },
  {
    name: 'takes requests before there is a slot',
    file: 'waiting.ts',
    find: '    state.roomDueAt = at > now ? at : NEVER;\n',
    replace:
      '    state.roomDueAt = at > now ? at : NEVER;\n    if (at > now) reserveFor(state, waiter.need, null, now);\n',
  },
  {
    name: 'takes nothing of the limits',
    file: 'reservation.ts',
    find: '  take(controls.rates, settings.rates, demand, now);\n',
    replace: '',
  },
  {
    name: 'asks whether there are requests, and not whether there are tokens',
    file: 'capacity.ts',
    find: 'settings.rates, need.demand, now)',
    replace: 'settings.rates, { ...need.demand, inputTokens: 0, outputTokens: 0 }, now)',
  },
  {
    name: 'reserves nothing of a budget',
    file: 'reservation.ts',
    find: '  reserveUsd(controls.spend, usd);\n',
    replace: '',
  },
  {
    name: 'gives nothing back that was never sent',
    file: 'leases.ts',
    find: "isUnused ? 'unused' : settlement",
    replace: 'isUnused ? null : settlement',
  },
  {
    name: 'keeps what was granted to a caller who had left',
    file: 'step.ts',
    find: "endLease(state, lease, 'cancelled', 'unused', now, effects);",
    replace: "endLease(state, lease, 'cancelled', null, now, effects);",
  },
  {
    name: 'settles what was settled before',
    file: 'reservation.ts',
    find: '  lease.reserved = null;\n',
    replace: '',
  },
  {
    name: 'gives back what a lapsed lease has probably used',
    file: 'leases.ts',
    find: 'settleLease(state, lease, null, now);',
    replace: "settleLease(state, lease, 'unused', now);",
  },
  {
    name: 'never settles a lease that lapsed',
    file: 'leases.ts',
    find: '      settleLease(state, lease, null, now);\n',
    replace: '',
  },
  {
    name: 'settles by the estimate whatever was counted',
    file: 'reservation.ts',
    find: 'const used: Demand = actual ?? reserved.demand;',
    replace: 'const used: Demand = reserved.demand;',
  },
  {
    name: 'learns nothing of what calls really use',
    file: 'reservation.ts',
    find: '  observeUsage(factors, model, { inputEstimate, ...seen });\n',
    replace: '',
  },
  {
    name: 'does not keep what was taken',
    file: 'step.ts',
    find: "    effects.push({ kind: 'keep', controls: state.controls });\n",
    replace: '',
  },
  {
    name: 'gives a second helping after a reset',
    file: 'recover.ts',
    find: 'emptyState(settings, firstAttachment, controls)',
    replace: 'emptyState(settings, firstAttachment)',
  },
  {
    name: 'keeps set aside after a reset what was for lost calls',
    file: 'recover.ts',
    find: '  keepReserved(state);\n',
    replace: '',
  },
  {
    name: 'lets a window go without its margin',
    file: 'parts/window.ts',
    find: 'lengthMs + marginMs',
    replace: 'lengthMs',
  },
  {
    name: 'counts a bin from its begin',
    file: 'parts/window.ts',
    find: 'instant((bin + 1) * binMs)',
    replace: 'instant(bin * binMs)',
  },
  {
    name: 'takes refunds for another minute',
    file: 'parts/window.ts',
    find: 'bin === binOf(params, takenAt)',
    replace: 'bin > 0',
  },
  {
    name: 'forgives every debt at once',
    file: 'parts/bucket.ts',
    find: 'bucket.level = Math.min(params.capacity, level);',
    replace: 'bucket.level = Math.min(params.capacity, Math.max(0, level));',
  },
  {
    name: 'counts nothing of what is in flight towards a limit that is set',
    file: 'step.ts',
    find: '  countInFlight(state, settings.rates, now);\n',
    replace: '',
  },
  {
    name: 'lets a limit that is set be owed for what is in flight',
    file: 'reservation.ts',
    find: '  forgive(state.controls.rates, added, now);\n',
    replace: '',
  },
  {
    name: 'keeps the debt of a dry run',
    file: 'step.ts',
    find: '    forgive(state.controls.rates, settings.rates, now);\n',
    replace: '',
  },
  {
    name: 'empties the limits when a dry run ends',
    file: 'parts/rates.ts',
    find: 'Math.max(0, -levelAt(held, bucket, now))',
    replace: '-levelAt(held, bucket, now)',
  },
  {
    name: 'sleeps though only time is lacking',
    file: 'step.ts',
    find: 'state.waitersDueAt, settled, room, tried)',
    replace: 'state.waitersDueAt, settled, tried)',
  },
  {
    name: 'refuses for good because of a guess',
    file: 'parts/demand.ts',
    find: 'Math.min(expected, leastOf(rates.otpm), besideInput)',
    replace: 'expected',
  },
  {
    name: 'refuses for good because of a guessed length',
    file: 'parts/demand.ts',
    find: 'estimate.isInputGuess === true ? Math.min(counted, inputMax) : counted',
    replace: 'counted',
  },
  {
    name: 'lets a call wait that is larger than a limit',
    file: 'refuse.ts',
    find: 'exceeded === null ? null : { ...tooWide, exceeded }',
    replace: 'null',
  },
  {
    name: 'lets what is large exceed the minute',
    file: 'parts/window.ts',
    find: '(1 + TOLERANCE) - amount;\n',
    replace: '(1 + TOLERANCE) - Math.min(amount, params.limit / 20);\n',
  },
  {
    name: 'lets small calls delay a large one',
    file: 'overtaking.ts',
    find: 'isSpare(settings.rates, spares, waiter.need.demand)',
    replace: 'true',
  },
  {
    name: 'lets small calls take what a large one needs of the bucket',
    file: 'overtaking.ts',
    find: 'at < first.at && fillInTime(controls.rates, rates, demand, expected, at)',
    replace: 'at < first.at',
  },
  {
    name: 'gives away the slot of who waits for tokens',
    file: 'overtaking.ts',
    find: 'const both = slots + first.waiter.need.slots;',
    replace: 'const both = slots;',
  },
  {
    name: 'lets nobody use what a large call leaves while it waits',
    file: 'overtaking.ts',
    find: 'if (at <= now) return { waiter, at };',
    replace: 'if (at < 0) return { waiter, at };',
  },
  {
    name: 'sleeps though somebody may overtake',
    file: 'step.ts',
    find: 'Math.min(state.roomDueAt, state.overtakingDueAt)',
    replace: 'state.roomDueAt',
  },
  {
    name: 'measures nobody anew whose turn comes',
    file: 'waiting.ts',
    find: '    waiter.need = needOf(state.controls.factors, state.settings.rates, waiter.ticket);\n',
    replace: '',
  },
  {
    name: 'foresees a wait for requests that may go at once',
    file: 'estimate.ts',
    find: 'ahead + 1 - atOnce',
    replace: 'ahead + 1',
  },
];

/** What may be spent. */
export const BUDGETS: readonly Mutation[] = [
  {
    name: 'lets budgets forget what is in flight',
    file: 'parts/spend.ts',
    find: 'spentIn(spend.total, period, now) + spend.reservedUsd',
    replace: 'spentIn(spend.total, period, now)',
  },
  {
    name: 'grants beyond the budget',
    file: 'waiting.ts',
    find: ' ?? refuseUnaffordable(state, waiter, now);\n',
    replace: ';\n',
  },
  {
    name: 'lets nested calls go beyond the budget',
    file: 'waiting.ts',
    find: 'if (unaffordable !== null) turnAway(state, waiter, unaffordable, now, effects);\n    else grant',
    replace: 'if (unaffordable === null || ticket.slots > 0) grant',
  },
  {
    name: 'refuses in a dry run what has no budget',
    file: 'waiting.ts',
    find: 'if (state.settings.isDryRun) letPass(state, waiter, now, effects);\n      else turnAway',
    replace: 'turnAway',
  },
];
