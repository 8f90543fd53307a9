import fc from 'fast-check';
import type { LeaseOutcome } from '../../src/core/words/outcome.ts';
import type { RefusalScope, UpstreamSignal } from '../../src/core/words/signal.ts';
import type { GroupSettings } from '../../src/core/words/settings.ts';
import {
  actionArb,
  askArb,
  memberActionArb,
  memberSettingsArb,
  PLAIN_ASK,
  settingsArb,
  SLOW_CALLS,
  reportedArb,
  type Action,
} from './actions.ts';

/** Histories of groups whose upstreams refuse calls: of one model, one tier, one key, or all. */

const kind = <Kind extends string>(name: Kind) => ({ kind: fc.constant(name) });
const pick = fc.nat(19);

const namesArb = fc.record({
  model: fc.constantFrom('pro', 'pro', 'flash', 'mini', null),
  tier: fc.constantFrom(null, null, null, 'flex'),
  credential: fc.constantFrom(null, null, 'k1', 'k2', 'k3'),
});

const signalArb = fc.record({
  kind: fc.constantFrom<UpstreamSignal['kind'][]>(
    ...(['served', 'served', 'served', 'error', 'error', 'error', 'overload'] as const),
    ...(['requests', 'requests', 'tokens', 'unknown', 'ramp', 'long_window'] as const),
    ...(['concurrency', 'concurrency', 'concurrency', 'quota', 'never_fits'] as const),
  ),
  retryAfterMs: fc.constantFrom(null, null, 0, 500, 3_000, 20_000, 2_000_000, 20_000_000),
  slotsMax: fc.constantFrom(null, null, null, 1, 2),
  isMistake: fc.nat(7).map((nat) => nat === 0),
});

const scopeArb = fc.constantFrom<(RefusalScope | null)[]>(
  ...(['call', 'tier', 'model', 'model', 'credential', 'credential', 'upstream', null] as const),
);

/** The key that reports an answer. null if Headgate has seen the answer. */
const byArb = fc.constantFrom(null, null, null, null, 'ann-1', 'bob-1', '');

const wordsArb = fc.constantFrom(null, null, 'no quota is left');

const answerArb: fc.Arbitrary<Action> = fc.record({
  ...kind('answer'),
  pick,
  signal: fc
    .tuple(signalArb, scopeArb, byArb, wordsArb, fc.boolean())
    .map(([signal, scope, reportedBy, words, isRate]) => ({
      ...signal,
      ...(signal.kind === 'overload' && isRate && { isRate: true as const }),
      ...(words !== null && { words }),
      ...(scope !== null && { scope }),
      ...(reportedBy !== null && { reportedBy }),
    })),
  isRepeat: fc.nat(5).map((nat) => nat === 0),
  told: fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, reportedArb),
  end: fc.constantFrom<(LeaseOutcome | null)[]>(
    null,
    null,
    'failed',
    'failed',
    'refused',
    'success',
  ),
});

const askOfModelArb: fc.Arbitrary<Action> = fc
  .tuple(askArb, namesArb, fc.nat(4))
  .map(([ask, names, nat]) => ({ ...ask, names, isUnread: nat === 0 }));

function scoped(actions: fc.Arbitrary<Action>): fc.Arbitrary<Action> {
  return fc.oneof(
    { weight: 10, arbitrary: actions.filter(({ kind: of }) => of !== 'ask') },
    { weight: 9, arbitrary: askOfModelArb },
    { weight: 6, arbitrary: answerArb },
    { weight: 1, arbitrary: fc.record({ ...kind('next_attempt'), pick: fc.nat(3) }) },
    { weight: 3, arbitrary: fc.record({ ...kind('end'), pick, outcome: outcomeArb }) },
    {
      weight: 2,
      arbitrary: fc.record({
        ...kind('advance'),
        ms: fc.constantFrom(1, 999, 2_000, 4_000, 20_000, 60_001, 600_000, 4_000_000),
      }),
    },
  );
}

const outcomeArb = fc.constantFrom<LeaseOutcome>('success', 'success', 'cancelled', 'failed');

/** Waits that are long enough to be held by lessons, and slots that the lessons can lower. */
function patient(settings: fc.Arbitrary<GroupSettings>): fc.Arbitrary<GroupSettings> {
  return fc
    .record({
      settings,
      timeoutMs: fc.constantFrom(30_000, 240_000, 4_000_000),
      releaseCooldownMs: fc.constantFrom<('auto' | number)[]>('auto', 'auto', 0, 200),
      isAdaptive: fc.nat(3).map((nat) => nat > 0),
    })
    .map(({ settings: others, ...own }) => {
      const members = others.members.map((each) => ({ ...each, isAdaptive: own.isAdaptive }));
      return { ...others, ...own, members, paused: false, isDraining: false };
    });
}

export const scopeSettingsArb = patient(settingsArb);
export const scopeActionArb = scoped(
  fc.oneof(
    { weight: 40, arbitrary: actionArb },
    { weight: 1, arbitrary: fc.constant<Action>({ kind: 'relearn' }) },
  ),
);

export const scopeMemberSettingsArb = patient(memberSettingsArb);
export const scopeMemberActionArb = scoped(
  fc.oneof(
    { weight: 40, arbitrary: memberActionArb },
    { weight: 1, arbitrary: fc.constant<Action>({ kind: 'relearn' }) },
  ),
);

const lengthyArb = fc.constantFrom(20_000, 600_000);

/** Like `scopeActionArb`, with a caller that makes up more names than the maximum of scopes. */
export const madeUpActionArb: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: scopeActionArb },
  {
    weight: 1,
    arbitrary: fc.record({
      ...kind('make_up'),
      tenant: fc.constantFrom('bob', 'cid', 'mal'),
      of: fc.constantFrom('model' as const, 'tier' as const, 'credential' as const),
      count: fc.constantFrom(5, 30, 66),
      signal: fc.oneof(
        lengthyArb.map((retryAfterMs) => ({ kind: 'requests' as const, retryAfterMs })),
        fc.constantFrom({ kind: 'error' as const }, { kind: 'concurrency' as const, slotsMax: 1 }),
      ),
    }),
  },
);

const CALM: ReadonlySet<Action['kind']> = new Set(['ask', 'answer', 'end', 'advance']);

/** Calls of members that change their ids sometimes. */
export const renamedActionArb: fc.Arbitrary<Action> = fc.oneof(
  { weight: 9, arbitrary: scopeMemberActionArb.filter(({ kind: of }) => CALM.has(of)) },
  { weight: 1, arbitrary: fc.record({ ...kind('rename'), pick: fc.nat(4) }) },
);

const NAMES = { model: 'pro', tier: null, credential: null };

/** A queued call of a model that is full for long. */
const FULL: readonly Action[] = [
  { ...PLAIN_ASK, names: { ...NAMES, model: 'flash' } },
  { kind: 'end', pick: 0, outcome: 'success' },
  { ...PLAIN_ASK, names: NAMES },
  {
    kind: 'answer',
    pick: 0,
    signal: { kind: 'requests', scope: 'model', retryAfterMs: 3_000_000 },
    isRepeat: false,
    told: null,
    end: 'failed',
  },
];

const patientArb = fc
  .tuple(
    askArb,
    fc.constantFrom('pro', 'pro', 'flash', 'mini'),
    fc.constantFrom(null, 60_000, 60_000, 240_000),
  )
  .map(([ask, model, patienceMs]) => {
    const waits = { wait: true, parent: null, slots: 1, timeoutMs: null, patienceMs };
    return { ...ask, ...waits, names: { ...NAMES, model } };
  });

/** Bursts of calls, many of a full model. */
export const crowdedScopeHistoryArb: fc.Arbitrary<Action[]> = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: patientArb },
      {
        weight: 2,
        arbitrary: fc.record({
          ...kind('crowd'),
          count: fc.constantFrom(10, 20, 40),
          ask: patientArb.map((ask) => ({ ...ask, patienceMs: null })),
        }),
      },
      { weight: 1, arbitrary: fc.record({ ...kind('end'), pick, outcome: outcomeArb }) },
      { weight: 1, arbitrary: fc.record({ ...kind('advance'), ms: fc.nat(20_000) }) },
      { weight: 1, arbitrary: answerArb },
    ),
    { minLength: 10, maxLength: 30, size: 'max' },
  )
  .map((history) => [...SLOW_CALLS, ...FULL, ...history]);
