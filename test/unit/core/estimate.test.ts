import { describe, expect, test } from 'vitest';
import { retryAfterMs } from '../../../src/core/estimate.ts';
import { ticketId } from '../../../src/core/words/ids.ts';
import { HOLD_GUESS_MS, RETRY_AFTER_MAX_MS } from '../../../src/core/words/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** The estimate of how long it may take, as a caller is told it. */

/** The Retry-After of a caller that does not want to wait. */
function retryAfter(group: TestGroup): number {
  group.ask('impatient', { wait: false });
  return group.rejection('impatient').retryAfterMs ?? NaN;
}

/** The estimate for a ticket that asks now. */
function estimate(group: TestGroup, name: string): number {
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
  test('is one guessed hold for the first behind one slot', () => {
    expect(estimate(fullGroup(1), 'a')).toBe(HOLD_GUESS_MS);
  });

  test('grows with the place', () => {
    const group = fullGroup(1);
    group.askAll('a', 'b');
    expect(estimate(group, 'c')).toBe(3 * HOLD_GUESS_MS);
  });

  test('shrinks with the number of slots', () => {
    expect(estimate(fullGroup(4), 'a')).toBe(HOLD_GUESS_MS / 4);
  });

  test('follows the time that calls hold their slots', () => {
    const group = fullGroup(1).learned();
    group.advance(5_000);
    group.release('holder0');
    group.ask('next');
    // The sixth sample: a fifth of it and four fifths of what was known.
    expect(estimate(group, 'a')).toBe(9_000);
  });

  test('forgets the guess with the first call that ends', () => {
    const group = fullGroup(1);
    group.advance(5_000);
    group.release('holder0');
    group.ask('next');
    expect(estimate(group, 'a')).toBe(5_000);
  });

  test.each(['failed', 'unused'] as const)('learns nothing from a call that was %s', (outcome) => {
    const group = fullGroup(1);
    group.advance(5_000);
    group.release('holder0', outcome);
    group.ask('next');
    expect(estimate(group, 'a')).toBe(HOLD_GUESS_MS);
  });

  test('is a minute where nothing drains', () => {
    expect(estimate(new TestGroup({ slotsMax: 0 }), 'a')).toBe(RETRY_AFTER_MAX_MS);
  });

  test('is nothing where there is no limit and only a pause holds the ticket up', () => {
    expect(estimate(new TestGroup({ slotsMax: Infinity, paused: true }), 'a')).toBe(0);
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
    const told = Array.from({ length: 500 }, (_, index) =>
      retryAfterMs(estimateMs, ticketId(`${(index * 7_919) % 9_973}-ticket-${index}`)),
    );
    expect(Math.min(...told)).toBeGreaterThanOrEqual(least);
    expect(Math.max(...told)).toBeLessThanOrEqual(most);
    // All of it is used, from one end to the other.
    expect(Math.max(...told) - Math.min(...told)).toBeGreaterThan(0.9 * (most - least));
  });

  test('is below a minute with a limit of 0', () => {
    const retry = retryAfter(new TestGroup({ slotsMax: 0 }));
    expect(retry).toBeGreaterThanOrEqual(40_000);
    expect(retry).toBeLessThanOrEqual(RETRY_AFTER_MAX_MS);
  });
});
