// The minute of a pool counts calls by key, upstream and model: the one that the call named, or else its answer.
import { expect, it } from 'vitest';
import type { CostSums } from '../../../src/core/parts/costs.ts';
import { emptyDecisionLog, type Decision } from '../../../src/core/parts/decision-log.ts';
import type { ReportedCalls } from '../../../src/core/parts/prefetches.ts';
import type { InstantMs } from '../../../src/core/words/ids.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { MinuteTenants } from '../../../src/group/observe/call-line.ts';

const NOW = 60_000 as InstantMs;
const IDLE = { leases: new Map() } as unknown as GroupState;
const CALLER = { caller: 'ci', tenant: 'ci', upstream: 'openai' };
const COSTS: CostSums = {
  usd: 0,
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  calls: 0,
  unpriced: 0,
  waited: 0,
};

const over = (model: string | null, reportedModel?: string): Decision =>
  ({
    ticket: { holder: { ...CALLER, model }, slots: 1 },
    decided: 'granted',
    decidedAt: NOW,
    ended: 'success',
    endedAt: NOW,
    ...(reportedModel !== undefined && { reportedModel }),
  }) as unknown as Decision;

const prefetched = (
  model: string | null,
  calls: number,
  reported: Record<string, number>,
): ReportedCalls =>
  ({
    holder: { ...CALLER, model },
    calls,
    heldMs: 0,
    costs: Object.entries(reported).map(([name, count]) => ({
      ...COSTS,
      team: null,
      model: name,
      calls: count,
    })),
  }) as unknown as ReportedCalls;

function counted(log: Partial<ReturnType<typeof emptyDecisionLog>>) {
  const minute = new MinuteTenants(NOW);
  minute.note({ ...emptyDecisionLog(), ...log });
  return minute.read(IDLE, NOW).callsOf;
}

it('a call counts for the model that it named, or else for the one that its answer named', () => {
  expect(
    counted({ over: [over('named', 'answered'), over(null, 'answered'), over(null)] }),
  ).toEqual([
    ['ci', 'openai', 'named', 1],
    ['ci', 'openai', 'answered', 1],
    ['ci', 'openai', null, 1],
  ]);
});

it('calls on lent slots count likewise, those without a report too', () => {
  expect(counted({ lent: [prefetched(null, 6, { a: 3, b: 2 })] })).toEqual([
    ['ci', 'openai', 'a', 3],
    ['ci', 'openai', 'b', 2],
    ['ci', 'openai', null, 1],
  ]);
  expect(counted({ lent: [prefetched('named', 4, { named: 4 })] })).toEqual([
    ['ci', 'openai', 'named', 4],
  ]);
});
