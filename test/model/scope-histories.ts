import type { GroupSettings } from '../../src/core/words/settings.ts';
import type { UpstreamSignal } from '../../src/core/words/signal.ts';
import { PLAIN_ASK, type Action } from './actions.ts';

/** Histories of scopes that are rare at random, each with its last answer. */

interface Directed {
  readonly settings: Partial<GroupSettings>;
  readonly history: readonly Action[];
  readonly decides: RegExp;
}

type ScopeHistoriesAsk = Extract<Action, { kind: 'ask' }>;

const NAMES = { model: null, tier: null, credential: null };

function ask(model: string, changes: Partial<ScopeHistoriesAsk> = {}): Action {
  return { ...PLAIN_ASK, names: { ...NAMES, model }, ...changes };
}

const END: Action = { kind: 'end', pick: 0, outcome: 'success' };

/** The oldest running call is refused for its model, and ends. */
function refused(signal: Partial<UpstreamSignal>): Action {
  const about = { scope: 'model' as const, ...signal };
  return { kind: 'answer', pick: 0, signal: about, isRepeat: false, told: null, end: 'failed' };
}

// Longer pauses are probed.
const LONG = { kind: 'requests', retryAfterMs: 800_000 } as const;
const PATIENT = { timeoutMs: 100_000_000, slotsMax: 8, queueLengthMax: 100 } as const;

/** Models that are full for long, of one caller, each a second after the one before. */
function fullModels(names: readonly string[]): Action[] {
  return names.flatMap((name) => [
    ask(name),
    refused(LONG),
    { kind: 'advance', ms: 1_000 } as const,
  ]);
}

const MANY = Array.from({ length: 64 }, (_, index) => `m${index}`);
const AT_ONCE = { wait: false } as const;

export const DIRECTED: Readonly<Record<string, Directed>> = {
  'a scope that a call has used outlives one that none has': {
    settings: PATIENT,
    history: [
      ask('flash'),
      END,
      ...fullModels(MANY),
      ask('m0', AT_ONCE),
      ...fullModels(['next']),
      ask('m0', AT_ONCE),
    ],
    decides: /upstream_limited$/,
  },
  'a scope of two callers outlives those of one': {
    settings: PATIENT,
    history: [
      ask('flash'),
      END,
      ...fullModels(MANY),
      ask('m0', { ...AT_ONCE, tenant: 'cid' }),
      ...MANY.slice(1).map((name) => ask(name, AT_ONCE)),
      { kind: 'advance', ms: 1_000 },
      ...MANY.slice(1).map((name) => ask(name, AT_ONCE)),
      ...fullModels(['next']),
      ask('m0', AT_ONCE),
    ],
    decides: /upstream_limited$/,
  },
  'a pause of more than an hour is not forgotten': {
    settings: PATIENT,
    history: [
      ask('flash'),
      END,
      ask('pro'),
      refused({ kind: 'long_window', retryAfterMs: 20_000_000 }),
      { kind: 'advance', ms: 4_000_000 },
      ask('flash'),
    ],
    decides: /grant t2\.1$/,
  },
  'a call takes no slot that an earlier one of its scope waits for': {
    settings: { ...PATIENT, ageCreditMs: 0 },
    history: [
      ask('flash'),
      END,
      ...Array.from({ length: 4 }, () => ask('pro')),
      { ...refused({ kind: 'concurrency', slotsMax: 2 }), pick: 3 } as Action,
      { ...refused({ kind: 'concurrency', slotsMax: 2 }), pick: 2 } as Action,
      ask('pro', { slots: 2 }),
      ask('pro'),
      { kind: 'end', pick: 0, outcome: 'success' },
      ask('flash'),
    ],
    decides: /grant t7\.1$/,
  },
};
