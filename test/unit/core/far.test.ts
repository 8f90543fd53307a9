import { describe, expect, test } from 'vitest';
import {
  DEFERRED_MS,
  HOLD_SAMPLES_MIN,
  NEAR_PLACES,
  ORPHAN_GRACE_MS,
  SETTLE_MAX_MS,
  REPORTED_FROM_PLACE,
} from '../../../src/core/words/settings.ts';
import { START, TestGroup, type AskOptions } from '../../support/core-builders.ts';

/** Waiters far back: nobody is parked for them, and they keep their place. */

const SLICE_MS = 8_000;

const LATER: AskOptions = { sliceMs: SLICE_MS, mayAskLater: true };

/** A group with one slot, held by `holder`, whose calls take 30 seconds: the third place is a minute away. */
function slowGroup(changes = {}): TestGroup {
  const group = TestGroup.stored({
    slotsMax: 1,
    timeoutMs: 3_600_000,
    queueLengthMax: 1_000,
    ...changes,
  });
  for (let index = 0; index < HOLD_SAMPLES_MIN; index += 1) {
    group.ask(`call-${index}`);
    group.advance(30_000);
    group.release(`call-${index}`);
  }
  group.ask('holder');
  return group;
}

/** Lets so many wait, parked for as long as it takes. */
function fill(group: TestGroup, waiters: number, changes: AskOptions = {}): void {
  for (let index = 0; index < waiters; index += 1) {
    group.ask(`near-${index}`, { sliceMs: 3_600_000, ...changes });
  }
}

/** The same group with as many ahead as are parked at least. */
function crowdedGroup(changes = {}): TestGroup {
  const group = slowGroup(changes);
  fill(group, NEAR_PLACES);
  return group;
}

const reportedLater = `pending far at ${NEAR_PLACES} again in ${SLICE_MS}`;

describe('a waiter that is far back', () => {
  test('is told so at once, and to ask again at the end of its slice', () => {
    const group = crowdedGroup();
    expect(group.ask('far', LATER)).toEqual([reportedLater]);
    expect(group.estimate('far')).toBeGreaterThan(DEFERRED_MS);
  });

  test('keeps its place until then and for a grace, and is dropped after that', () => {
    const group = crowdedGroup();
    group.ask('far', LATER);
    group.ask('behind', { sliceMs: 3_600_000 });
    group.advance(SLICE_MS + ORPHAN_GRACE_MS - 1);
    expect(group.waiting().slice(-2)).toEqual(['far', 'behind']);
    expect(group.wakesIn()).toBe(1);
    expect(group.advance(1)).toEqual([]);
    expect(group.waiting().at(-1)).toBe('behind');
  });

  test('is told to ask later again as long as it is far, by the slice that it has then', () => {
    const group = crowdedGroup();
    group.ask('far', LATER);
    group.advance(SLICE_MS);
    expect(group.ask('far', { ...LATER, sliceMs: 30_000 })).toEqual([
      `pending far at ${NEAR_PLACES} again in 30000`,
    ]);
    group.advance(30_000 + ORPHAN_GRACE_MS - 1);
    expect(group.waiting()).toContain('far');
  });

  test('is parked when it asks nearer', () => {
    const group = crowdedGroup();
    group.ask('far', LATER);
    group.cancel('near-0');
    expect(group.ask('far', LATER)).toEqual([]);
    expect(group.advance(SLICE_MS)).toEqual([`pending far at ${NEAR_PLACES - 1}`]);
  });

  test('is passed over while nobody is parked for it, and has its turn when it asks', () => {
    const group = crowdedGroup();
    group.ask('far', LATER);
    group.ask('behind', { sliceMs: 3_600_000 });
    for (let index = 0; index < NEAR_PLACES; index += 1) group.cancel(`near-${index}`);
    expect(group.reconfigure({ slotsMax: 2 })).toEqual(['grant behind.1']);
    group.release('holder');
    expect(group.ask('far', LATER)).toEqual(['grant far.1']);
  });

  test('goes first when an operator says so, once it asks', () => {
    const group = crowdedGroup();
    group.ask('far', LATER);
    group.promote('far');
    expect(group.release('holder')).toEqual(['ended holder.1', 'grant near-0.1']);
    expect(group.ask('far', LATER)).toEqual([]);
    expect(group.release('near-0')).toEqual(['ended near-0.1', 'grant far.1']);
  });

  test('has its place again after a reset, though newcomers have filled the queue by then', () => {
    const before = slowGroup({ queueLengthMax: 40 });
    const cameMs = before.now - START;
    const names = Array.from({ length: 40 }, (_, index) => `w${index}`);
    const isDeferred = (name: string) => before.ask(name, LATER).join().includes('again in');
    const far = new Set(names.filter(isDeferred));
    expect(far.size).toBe(40 - NEAR_PLACES);
    before.advance(1);
    const after = before.restart();
    after.resume('holder');
    const comeBack = (name: string) => after.ask(name, { ...LATER, enqueuedMs: cameMs });
    expect(names.filter((name) => !far.has(name)).flatMap(comeBack)).toEqual([]);
    after.advance(SETTLE_MAX_MS);
    const newer = [...far].map((name) => `after-${name}`);
    expect(newer.flatMap((name) => after.ask(name, LATER))).toEqual([]);
    expect(after.ask('one-more', LATER)).toEqual(['reject one-more queue_full']);
    expect([...far].flatMap(comeBack)).toEqual(
      newer.toReversed().map((name) => `reject ${name} queue_full`),
    );
    expect(after.waiting()).toEqual(names);
  });

  test('may leave, and is told what is to be told of its end', () => {
    const group = crowdedGroup();
    group.ask('far', LATER);
    group.ask('farther', LATER);
    expect(group.cancel('far')).toEqual(['gone far']);
    expect(group.ask('far', LATER)).toEqual(['gone far']);
    expect(group.move()).toContain('moved farther');
  });
});

describe('a waiter is parked', () => {
  test('by a Worker that knows nothing else', () => {
    expect(crowdedGroup().ask('far', { sliceMs: SLICE_MS })).toEqual([]);
  });

  test.each([
    ['near the front, whatever the estimate', NEAR_PLACES - 1, {}],
    ['that may pass on the slots of its parent', NEAR_PLACES, { parents: ['call-0'] }],
  ])('%s', (_, ahead, options) => {
    const group = slowGroup();
    fill(group, ahead);
    expect(group.ask('far', { ...LATER, ...options })).toEqual([]);
  });

  test('whose turn is less than a minute away', () => {
    const group = crowdedGroup({ slotsMax: 100 });
    for (let index = 0; index < 99; index += 1) group.ask(`held-${index}`);
    fill(group, 2 * NEAR_PLACES);
    expect(group.ask('near', LATER)).toEqual([]);
  });

  test('whose deadline would come before it asks again, so that it hears of it', () => {
    const group = crowdedGroup();
    // Or it would be refused: while a group is paused nobody knows how long it takes.
    group.reconfigure({ paused: true });
    const lastMs = group.now - START + SLICE_MS + ORPHAN_GRACE_MS;
    expect(group.ask('far', { ...LATER, deadlineMs: lastMs + 1 })).toEqual([reportedLater]);
    expect(group.ask('near', { ...LATER, deadlineMs: lastMs })).toEqual([]);
  });

  test('as long as the estimate is a guess', () => {
    const group = crowdedGroup();
    group.state.holdSamples = HOLD_SAMPLES_MIN - 1;
    expect(group.ask('far', LATER)).toEqual([]);
    group.state.holdSamples = HOLD_SAMPLES_MIN;
    expect(group.ask('far', LATER)).toEqual([reportedLater]);
  });
});

describe('a waiter that many others are ahead of is parked if they need not go before it', () => {
  /** Lets it ask until it is told nothing any more, or to ask later. */
  function isParked(group: TestGroup, name: string, options: AskOptions): boolean {
    const answers = [...group.ask(name, options), ...group.ask(name, options)];
    return !answers.join(' ').includes('again in');
  }

  const crowded: AskOptions = { lane: 'high' };

  test.each<[string, object, AskOptions, AskOptions]>([
    [
      'where its tenant is below its reservation',
      { reserved: { another: 1 } },
      crowded,
      { tenant: 'another' },
    ],
    ['where those are at their cap', { slotsMaxEach: 1 }, crowded, { tenant: 'another' }],
    ['where its agent had less', { byAgent: true }, { agent: 'greedy' }, { agent: 'modest' }],
    ['where its lane has a share', {}, crowded, { tenant: 'another' }],
  ])('%s', (_, settings, callersAtOnce, ask) => {
    const group = slowGroup(settings);
    fill(group, 100, callersAtOnce);
    expect(isParked(group, 'crowded', { ...LATER, ...callersAtOnce })).toBe(false);
    expect(isParked(group, 'far', { ...LATER, ...ask })).toBe(true);
  });

  test('so that the eldest of many tenants has the next slot, and nobody who comes new', () => {
    const group = slowGroup();
    const askAll = (): void => {
      for (let index = 0; index < 2 * NEAR_PLACES; index += 1) {
        group.ask(`of-${index}`, { ...LATER, tenant: `tenant-${index}` });
      }
    };
    askAll();
    askAll();
    const parked = [...group.state.queue.byTicket.values()].filter(
      ({ sliceEndsAt }) => sliceEndsAt !== null,
    );
    expect(parked.map(({ ticket }) => ticket.id)).toEqual(
      Array.from({ length: NEAR_PLACES }, (__, index) => `of-${index}`),
    );
    expect(group.release('holder')).toEqual(['ended holder.1', 'grant of-0.1']);
  });
});

describe('the place of a newcomer with many ahead', () => {
  /** A group in which everybody's turn is less than a minute away. */
  function quickGroup(waiters: number): TestGroup {
    const group = TestGroup.stored({ slotsMax: 100, timeoutMs: 3_600_000, queueLengthMax: 1_000 });
    for (let index = 0; index < 100; index += 1) group.ask(`held-${index}`);
    fill(group, waiters);
    return group;
  }

  test('is told at once, and asked for no more', () => {
    const group = quickGroup(REPORTED_FROM_PLACE);
    expect(group.ask('a', LATER)).toEqual([`pending a at ${REPORTED_FROM_PLACE}`]);
    expect(group.waiting().at(-1)).toBe('a');
    expect(group.ask('a', LATER)).toEqual([]);
  });

  test('is not told where few are ahead, nor to a Worker that would not understand', () => {
    expect(quickGroup(REPORTED_FROM_PLACE - 1).ask('a', LATER)).toEqual([]);
    expect(quickGroup(REPORTED_FROM_PLACE).ask('a')).toEqual([]);
  });

  test('is not told to those who come back after a reset: they know it', () => {
    const group = quickGroup(REPORTED_FROM_PLACE).restart();
    fill(group, REPORTED_FROM_PLACE);
    expect(group.ask('a', LATER)).toEqual([]);
  });
});
