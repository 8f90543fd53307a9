import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Effect } from '../../../src/core/events.ts';
import { probableOrder } from '../../../src/core/outlook.ts';
import { instant, leaseIdOf, ticketId } from '../../../src/core/words/ids.ts';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import { emptyState } from '../../../src/core/recover.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { step } from '../../../src/core/step.ts';
import { LANES, type Lane } from '../../../src/core/words/ticket.ts';
import { someSettings, TestGroup } from '../../support/core-builders.ts';

/**
 * Tests of the forecast against what the group then does: one slot, every call held for exactly the
 * mean that is known, nobody joins meanwhile.
 */

const START = 1_000_000_000;

interface ForecastAsk {
  readonly tenant: string;
  readonly agent: string | null;
  readonly lane: Lane;
  readonly atMs: number;
  readonly slots: number;
  readonly promoted: boolean;
}

function queued(settings: Partial<GroupSettings>, asks: readonly ForecastAsk[]): GroupState {
  const state = emptyState(
    someSettings({ slotsMax: 1, timeoutMs: 3_600_000, slotsPerCallMax: 1, ...settings }),
    1,
  );
  state.holdSamples = 1;
  const now = instant(START + 1_000);
  const ask = (name: string, { tenant, agent, lane, atMs, slots }: ForecastAsk) => {
    const id = ticketId(name);
    const holder = { tenant, agent, caller: tenant, upstream: 'openai', model: null };
    const ticket = {
      id,
      holder,
      lane,
      slots,
      enqueuedAt: instant(START + atMs),
      agentStartedAt: null,
      deadlineAt: null,
      wait: true,
      isTry: false,
      waitsElsewhere: false,
      parents: [],
      estimate: null,
    };
    const leaseId = leaseIdOf(id, 1);
    step(state, { kind: 'acquire', ticket, leaseId, sliceMs: 3_600_000 }, now);
  };
  ask('holder', { ...someAsk, tenant: 'nobody' });
  for (const [index, each] of asks.entries()) {
    ask(`t${index}`, each);
    if (!each.promoted) continue;
    const id = ticketId(`t${index}`);
    step(state, { kind: 'promote', ticketId: id, lane: null, toFront: true }, now);
  }
  return state;
}

const someAsk: ForecastAsk = {
  tenant: 'acme',
  agent: null,
  lane: 'normal',
  atMs: 0,
  slots: 1,
  promoted: false,
};

/** Lets the group run until nobody waits. */
function played(state: GroupState): string[] {
  const order: string[] = [];
  let now = START + 1_000;
  let current = 'holder';
  while (state.queue.byTicket.size > 0) {
    now += state.holdMeanMs;
    const leaseId = leaseIdOf(ticketId(current), 1);
    const event = { kind: 'release', leaseId, outcome: 'success', settlement: null } as const;
    const granted = step(state, event, instant(now)).find(
      (effect): effect is Extract<Effect, { kind: 'grant' }> => effect.kind === 'grant',
    );
    if (granted === undefined) throw new Error('nobody was granted');
    current = granted.ticketId;
    order.push(current);
  }
  return order;
}

function forecast(state: GroupState): string[] {
  return probableOrder(state).map(({ ticket }) => ticket.id as string);
}

const asks = fc.array(
  fc.record({
    tenant: fc.constantFrom('acme', 'bolt', 'core'),
    agent: fc.constantFrom(null, 'run-1', 'run-2'),
    lane: fc.constantFrom(...LANES),
    atMs: fc.integer({ min: 0, max: 1_000 }),
    slots: fc.constant(1),
    promoted: fc.constant(false),
  }),
  { maxLength: 40 },
);

test.each([
  ['tenants and lanes', {}],
  ['weights', { weights: { acme: 3, bolt: 0.5 } }],
  ['first come first served', { ageCreditMs: 0 }],
] as const)('the forecast is what happens when every call takes the mean: %s', (_, settings) => {
  fc.assert(
    fc.property(asks, (some) => {
      const state = queued(settings, some);
      const expected = forecast(state);
      expect(forecast(state)).toEqual(expected); // it changed nothing
      expect(played(state)).toEqual(expected);
    }),
    { numRuns: 300 },
  );
});

test('the forecast knows that agents of a tenant share its part', () => {
  fc.assert(
    fc.property(asks, (some) => {
      const state = queued(
        { byAgent: true },
        some.map((each) => ({ ...each, lane: 'normal' })),
      );
      const expected = forecast(state);
      expect(played(state)).toEqual(expected);
    }),
    { numRuns: 300 },
  );
});

test.each([
  ['tenants', { tenant: 'ann' }, { tenant: 'bob' }],
  ['agents', { tenant: 'ann', agent: 'long' }, { tenant: 'ann', agent: 'new' }],
])(
  'before a call has ended it lets turns of %s cost next to nothing, as the group does',
  (_, long, fresh) => {
    const sliceMs = 600_000;
    const group = new TestGroup({ slotsMax: 1, timeoutMs: sliceMs, byAgent: true });
    for (const name of ['long-0', 'long-1']) group.ask(name, { ...long, sliceMs });
    for (const name of ['new-1', 'new-2', 'new-3']) group.ask(name, { ...fresh, sliceMs });
    group.advance(20_000);
    group.renew('long-0');
    const expected = ['new-1', 'new-2', 'new-3', 'long-1'];
    expect(forecast(group.state)).toEqual(expected);
    expect(group.reconfigure({ slotsMax: 9 })).toEqual(expected.map((name) => `grant ${name}.1`));
  },
);

test('those who were promoted stand in front of everybody', () => {
  const state = queued({}, [
    { ...someAsk, lane: 'high' },
    { ...someAsk, lane: 'low', promoted: true },
    { ...someAsk, tenant: 'bolt', atMs: 500, promoted: true },
  ]);
  expect(forecast(state)).toEqual(['t2', 't1', 't0']);
  expect(played(state)).toEqual(['t2', 't1', 't0']);
});

test('five thousand waiters of as many tenants are put in order in no time', () => {
  const many = Array.from({ length: 5_000 }, (_, index) => ({
    ...someAsk,
    tenant: `tenant-${index % 2_500}`,
    lane: LANES[index % 3] ?? 'low',
  }));
  const state = queued({ queueLengthMax: 5_000 }, many);
  expect(new Set(forecast(state)).size).toBe(5_000);
});
