import { describe, expect, test } from 'vitest';
import { retryAfterMs } from '../../../src/core/estimate.ts';
import { ticketId } from '../../../src/core/words/ids.ts';
import { RETURN_MS, HOLD_GUESS_MS, RETRY_AFTER_MAX_MS } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** The estimate of how long it may take, as a caller is told it. */

/** The Retry-After of a caller that does not want to wait. */
function retryAfter(group: TestGroup): number {
  group.ask('impatient', { wait: false });
  return group.rejection('impatient').retryAfterMs ?? NaN;
}

/** The estimate for a ticket that asks now. Null: none is told. */
function estimate(group: TestGroup, name: string): number | null {
  group.ask(name, { sliceMs: 0 });
  group.tick();
  return group.estimate(name);
}

/** A group with that many slots, all taken, by calls that began now. */
function fullGroup(slotsMax: number): TestGroup {
  const group = new TestGroup({ slotsMax, timeoutMs: 3_600_000 });
  for (let index = 0; index < slotsMax; index += 1) group.ask(`holder${index}`);
  return group;
}

describe('the estimate', () => {
  test('grows with the place', () => {
    const group = fullGroup(1).learned();
    group.askAll('a', 'b');
    expect(estimate(group, 'c')).toBe(3 * HOLD_GUESS_MS);
  });

  test('shrinks with the number of slots', () => {
    expect(estimate(fullGroup(4).learned(), 'a')).toBe(HOLD_GUESS_MS / 4);
  });

  test('follows the time that calls hold their slots', () => {
    const group = fullGroup(1).learned();
    group.advance(5_000);
    group.release('holder0');
    group.ask('next');
    // The sixth sample: a fifth of it and four fifths of what was known.
    expect(estimate(group, 'a')).toBe(9_000);
  });

  test('begins with the first call that ends', () => {
    const group = fullGroup(1);
    expect(estimate(group, 'a')).toBeNull();
    group.cancel('a');
    group.advance(5_000);
    group.release('holder0');
    group.ask('next');
    expect(estimate(group, 'b')).toBe(5_000);
  });

  test.each(['failed', 'unused'] as const)('learns nothing from a call that was %s', (outcome) => {
    const group = fullGroup(1);
    group.advance(5_000);
    group.release('holder0', outcome);
    group.ask('next');
    expect(estimate(group, 'a')).toBeNull();
  });

  test.each([
    ['where nothing drains', { slotsMax: 0 }],
    ['while an operator pauses the group', { slotsMax: Infinity, paused: true }],
  ])('is none %s', (_when, settings) => {
    expect(estimate(new TestGroup(settings), 'a')).toBeNull();
  });

  test('is none once no call has ended for two seconds or five times the usual', () => {
    const group = fullGroup(4).learned();
    const gapMs = HOLD_GUESS_MS / 4;
    group.advance(5 * gapMs);
    expect(estimate(group, 'a')).toBe(gapMs);
    group.advance(1);
    expect(estimate(group, 'a')).toBeNull();
    expect(group.place('a')).toMatchObject({
      waitsFor: { cause: 'slots' },
      quietMs: 5 * gapMs + 1,
    });
    group.release('holder0', 'failed');
    group.ask('next');
    expect(estimate(group, 'b')).toBe(2 * gapMs);
    expect(group.place('b').quietMs).toBeNull();
  });

  test('counts from the last grant: while a group is idle, nothing can end in it', () => {
    const group = new TestGroup({ slotsMax: 1 }).learned();
    group.advance(3_600_000);
    group.ask('holder');
    expect(estimate(group, 'a')).toBe(HOLD_GUESS_MS);
  });

  test('is the end of a pause of the upstream, though nothing ends meanwhile', () => {
    const group = new TestGroup({ slotsMax: 2 }).learned();
    group.ask('holder');
    group.report('holder', { kind: 'requests', retryAfterMs: 20_000 });
    group.release('holder', 'refused');
    const toGoMs = estimate(group, 'a') ?? NaN;
    expect(group.place('a').waitsFor?.cause).toBe('upstream_pause');
    expect(toGoMs).toBeGreaterThanOrEqual(20_000);
    group.advance(15_000);
    expect(estimate(group, 'a')).toBe(toGoMs - 15_000);
    // One behind it starts then, too: there is a slot for each.
    expect(estimate(group, 'b')).toBe(toGoMs - 15_000);
  });

  test.each([
    ['its tenant', { slotsMax: 4, slotsMaxEach: 1 }],
    ['its agent', { slotsMax: 4, slotsMaxEachAgent: 1 }],
  ])('is none for a call that waits for a slot of %s', (_whose, settings) => {
    const group = new TestGroup(settings).learned();
    const mine = { tenant: 'ann', agent: 'run' };
    group.ask('holder', mine);
    group.ask('a', { ...mine, sliceMs: 0 });
    group.tick();
    expect(group.place('a')).toMatchObject({ estimateMs: null, waitsFor: { cause: 'cap' } });
  });

  test('is none for a call that waits behind a wide one, whatever slots are free', () => {
    const group = new TestGroup({ slotsMax: 2, slotsPerCallMax: 2 }).learned();
    group.ask('holder');
    group.ask('wide', { slots: 2 });
    expect(estimate(group, 'a')).not.toBeNull();
    expect(group.place('a').waitsFor?.cause).toBe('order');
    group.advance(2.5 * HOLD_GUESS_MS + 1);
    expect(estimate(group, 'b')).toBeNull();
  });
});

describe('Retry-After', () => {
  test('is the estimate of the place that the caller would have had, with jitter', () => {
    const group = fullGroup(1);
    group.ask('a');
    const retry = retryAfter(group);
    expect(retry).toBeGreaterThanOrEqual(0.8 * 2 * HOLD_GUESS_MS);
    expect(retry).toBeLessThanOrEqual(1.2 * 2 * HOLD_GUESS_MS);
  });

  test('is the same again for the same ticket', () => {
    expect(retryAfter(fullGroup(1))).toBe(retryAfter(fullGroup(1)));
  });

  test.each([
    ['around the estimate', 20_000, 16_000, 24_000],
    ['and is at least a second', 3, 1_000, 1_500],
    ['and is at most a minute', 900_000, 40_000, 60_000],
  ])('spreads %s', (_where, estimateMs, least, most) => {
    const reported = Array.from({ length: 500 }, (_, index) =>
      retryAfterMs(estimateMs, ticketId(`${(index * 7_919) % 9_973}-ticket-${index}`)),
    );
    expect(Math.min(...reported)).toBeGreaterThanOrEqual(least);
    expect(Math.max(...reported)).toBeLessThanOrEqual(most);
    // All of it is used, from one end to the other.
    expect(Math.max(...reported) - Math.min(...reported)).toBeGreaterThan(0.9 * (most - least));
  });

  test('is no guess where no call has ended for long', () => {
    const group = fullGroup(1000).learned();
    expect(retryAfter(group)).toBeLessThan(2_000);
    group.advance(20_000);
    expect(retryAfter(group)).toBeGreaterThanOrEqual(RETURN_MS);
  });

  test('is below a minute with a limit of 0', () => {
    const retry = retryAfter(new TestGroup({ slotsMax: 0 }));
    expect(retry).toBeGreaterThanOrEqual(40_000);
    expect(retry).toBeLessThanOrEqual(RETRY_AFTER_MAX_MS);
  });
});
