import { describe, expect, test } from 'vitest';
import { HOLD_GUESS_MS, RETRY_AFTER_MAX_MS } from '../../../src/core/settings.ts';
import { TestGroup } from '../../support/core-builders.ts';

/** What a caller is told about how long it may take. */

/** The Retry-After of a caller that does not want to wait. */
function retryAfter(group: TestGroup): number {
  group.ask('impatient', { wait: false });
  return group.rejection('impatient').retryAfterMs;
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
    const group = fullGroup(1);
    group.advance(5_000);
    group.release('holder0');
    group.ask('next');
    expect(estimate(group, 'a')).toBe(9_000);
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
  test('is the estimate of one more ticket', () => {
    const group = fullGroup(1);
    group.ask('a');
    // The newcomer itself stands in the line while it is refused.
    expect(retryAfter(group)).toBe(3 * HOLD_GUESS_MS);
  });

  test('is at least a second', () => {
    expect(retryAfter(fullGroup(1_000))).toBe(1_000);
  });

  test('is at most a minute', () => {
    const group = fullGroup(1);
    for (let index = 0; index < 20; index += 1) group.ask(`t${index}`);
    expect(retryAfter(group)).toBe(RETRY_AFTER_MAX_MS);
  });

  test('is a minute with a limit of 0', () => {
    expect(retryAfter(new TestGroup({ slotsMax: 0 }))).toBe(RETRY_AFTER_MAX_MS);
  });
});
