import type { Mutation } from './mutation.ts';

/** What the group makes of the answers of its upstream. */
export const SIGNALS: readonly Mutation[] = [
  {
    name: 'keeps the pause that an operator wants forgotten',
    file: 'step.ts',
    find: '  Object.assign(controls.pause, emptyPause());\n',
    replace: '',
  },
  {
    name: 'keeps the breaker open that an operator wants forgotten',
    file: 'step.ts',
    find: '  Object.assign(controls.breaker, closedBreaker());\n',
    replace: '',
  },
  {
    name: 'keeps the ceiling that an operator wants forgotten',
    file: 'step.ts',
    find: '  Object.assign(controls.ceiling, emptyCeiling(now));\n',
    replace: '',
  },
  {
    name: 'lets one call pause a group again and again',
    file: 'upstream-signals.ts',
    find: 'if (!isRepeat) pauseFor',
    replace: 'pauseFor',
  },
  {
    name: 'lets one call empty a limit again and again',
    file: 'upstream-signals.ts',
    find: 'if (!isRepeat) drain',
    replace: 'drain',
  },
  {
    name: 'leaves a limit full that was refused',
    file: 'upstream-signals.ts',
    find: '      if (!isRepeat) drain(rates, settings.rates, kind, now);\n',
    replace: '',
  },
  {
    name: 'cuts the ceiling for a limit per minute',
    file: 'upstream-signals.ts',
    find: 'if (!isRepeat) drain(',
    replace: 'noteOverload(ceiling, settings, call, now);\n      if (!isRepeat) drain(',
  },
  {
    name: 'pauses for too many at once',
    file: 'upstream-signals.ts',
    find: 'if (settings.isHard) controls.lagSeenAt = now;',
    replace: 'controls.lagSeenAt = now;\n      pauseOnce(false);',
  },
  {
    name: 'shortens a pause by a later one',
    file: 'parts/pause.ts',
    find: 'Math.max(pause.until, after(now, askedMs))',
    replace: 'after(now, askedMs)',
  },
  {
    name: 'ends a pause without a ramp',
    file: 'parts/pause.ts',
    find: '  if (pause.until === 0) return slotsMax;\n',
    replace: '  if (pause.until <= now) return slotsMax;\n',
  },
  {
    name: 'grants in a pause',
    file: 'parts/pause.ts',
    find: '  if (isPaused(pause, now)) return 0;\n',
    replace: '  if (isPaused(pause, now)) return slotsMax;\n',
  },
  {
    name: 'lets waiters wait for the end of a pause that they do not live to see',
    file: 'step.ts',
    find: '  if (stopsUntil(state, now) > stoppedUntil) letGoOfStopped(state, now, effects);\n',
    replace: '',
  },
  {
    name: 'keeps narrower slots through a pause of the upstream',
    file: 'step.ts',
    find: 'else if (waiter.ticket.holdsNarrower) decline(state, waiter, now, effects);',
    replace: '',
  },
  {
    name: 'looks at a short pause where the breaker is open for longer',
    file: 'capacity.ts',
    find: 'until !== NEVER && until > pause.until',
    replace: 'until !== NEVER && now >= pause.until',
  },
  {
    name: 'cuts twice for one jam',
    file: 'parts/ceiling.ts',
    find: 'if (!isLearning(settings) || grantedAt <= ceiling.lastCutAt) return;',
    replace: 'if (!isLearning(settings)) return;',
  },
  {
    name: 'learns of a limit of 0 that it is 0',
    file: 'parts/ceiling.ts',
    find: 'isAdaptive && slotsMax > 0',
    replace: 'isAdaptive',
  },
  {
    name: 'learns where it is told not to',
    file: 'parts/ceiling.ts',
    find: '  if (!isLearning(settings)) return;\n  const believed',
    replace: '  const believed',
  },
  {
    name: 'counts slots that cool down as calls at the upstream',
    file: 'capacity.ts',
    find: 'slotsInUse - slotsCooling - slotsWaitingElsewhere',
    replace: 'slotsInUse - slotsWaitingElsewhere',
  },
  {
    name: 'counts calls as in flight that were refused',
    file: 'capacity.ts',
    find: 'slotsWaitingElsewhere - slotsRefused',
    replace: 'slotsWaitingElsewhere',
  },
  {
    name: 'takes a call for old that waited in another group',
    file: 'leases.ts',
    find: '  lease.callableAt = now;\n',
    replace: '',
  },
  {
    name: 'lets no wide call go above what was learned',
    file: 'capacity.ts',
    find: 'slotsInUse > 0 && slots > slotsMax',
    replace: 'slots > slotsMax',
  },
  {
    name: 'never wakes for a wide call in a pause',
    file: 'capacity.ts',
    find: 'slotsInUse > 0 && slots > slotsMax',
    replace: '(slotsInUse > 0 || now < pause.until) && slots > slotsMax',
  },
  {
    name: 'takes the word of an assumed limit for lag',
    file: 'upstream-signals.ts',
    find: 'if (settings.isHard) controls.lagSeenAt = now;',
    replace: 'controls.lagSeenAt = now;',
  },
  {
    name: 'forgets that the counter of the upstream lags',
    file: 'cooldown.ts',
    find: 'isSmall || now < lagsUntil',
    replace: 'isSmall',
  },
];

/** The breaker, and who hears of what was served. */
export const PROBES: readonly Mutation[] = [
  {
    name: 'does not count a success at the headers',
    file: 'upstream-signals.ts',
    find: "if (kind === 'served') return applyServed(state, lease, retryAfterMs, now);",
    replace: "if (kind === 'served') return noteEnded(state, lease, false, now);",
  },
  {
    name: 'keeps the permit of a probe that ended',
    file: 'leases.ts',
    find: '  noteEnded(state, lease, false, now);\n',
    replace: '',
  },
  {
    name: 'keeps the permit of a probe that lapsed',
    file: 'leases.ts',
    find: '      noteEnded(state, lease, true, now);\n',
    replace: '',
  },
  {
    name: 'takes a probe for failed whose caller left',
    file: 'leases.ts',
    find: 'noteEnded(state, lease, false, now);',
    replace: "noteEnded(state, lease, outcome === 'cancelled', now);",
  },
  {
    name: 'keeps permits over a reset of probes that were lost',
    file: 'recover.ts',
    find: '  keepProbes(controls.breaker, (id) => state.leases.has(id));\n',
    replace: '',
  },
  {
    name: 'takes calls for probes that the breaker did not allow',
    file: 'upstream-signals.ts',
    find: 'if (breakerAllows(controls.breaker, now)) breakerGranted',
    replace: 'breakerGranted',
  },
  {
    name: 'lets everybody probe',
    file: 'capacity.ts',
    find: '  if (!allows(breaker, now)) at = Math.max(at, breakerChangesAt(breaker, now));\n',
    replace: '',
  },
  {
    name: 'wants word of every success for ever after a failure',
    file: 'upstream-signals.ts',
    find: 'hasFailedLately(breaker, now)) return',
    replace: 'breaker.results.length > 0) return',
  },
  {
    name: 'wants no word of success where it probes',
    file: 'upstream-signals.ts',
    find: "if (breaker.phase !== 'closed' || hasFailedLately(breaker, now)) return true;",
    replace: 'if (hasFailedLately(breaker, now)) return true;',
  },
];
