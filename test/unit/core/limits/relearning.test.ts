import { describe, expect, test } from 'vitest';
import { TestGroup } from '../../../support/core-builders.ts';
import { call, leftIn, metered } from './metered.ts';

/** An operator who knows better than what the upstream said last. */

const sliceMs = 600_000;
const DAYS_MS = 9 * 86_400_000;

describe('what was learned is forgotten', () => {
  test('a pause ends at once, and those who wait are granted in their order, all slots at a time', () => {
    const group = new TestGroup({ slotsMax: 4, timeoutMs: 600_000 });
    group.ask('refused');
    group.report('refused', { kind: 'requests', retryAfterMs: 300_000 });
    group.release('refused', 'failed');
    for (const name of ['a', 'b', 'c', 'd']) group.ask(name, { sliceMs });
    expect(group.advance(10_000)).toEqual([]);
    const granted = group.send({ kind: 'relearn' });
    expect(granted).toEqual(['grant a.1', 'grant b.1', 'grant c.1', 'grant d.1']);
  });

  test('a limit of days stops nobody who comes later', () => {
    const group = new TestGroup({ slotsMax: 4 });
    group.ask('refused');
    group.report('refused', { kind: 'long_window', retryAfterMs: DAYS_MS });
    group.release('refused', 'failed');
    expect(group.ask('a', { wait: false })).toEqual(['reject a upstream_limited']);
    group.send({ kind: 'relearn' });
    expect(group.ask('b', { wait: false })).toEqual(['grant b.1']);
  });

  test('a learned ceiling gives way to what is configured', () => {
    const group = new TestGroup({ slotsMax: 4, timeoutMs: 600_000 });
    group.askAll('a', 'b', 'c', 'd');
    for (const name of ['d', 'c']) {
      group.report(name, { kind: 'concurrency' });
      group.release(name, 'failed');
    }
    group.advance(1_000);
    group.ask('e', { sliceMs });
    expect(group.waiting()).toEqual(['e']);
    expect(group.send({ kind: 'relearn' })).toEqual(['grant e.1']);
    expect(group.ask('f')).toEqual(['grant f.1']);
  });

  test('an open breaker closes, though its probes are still under way', () => {
    const group = new TestGroup({ slotsMax: 100, timeoutMs: 600_000 });
    const names = Array.from({ length: 20 }, (_, index) => `f${index}`);
    group.askAll(...names);
    for (const name of names) {
      group.report(name, { kind: 'overload' });
      group.release(name, 'failed');
    }
    group.advance(1_000);
    expect(group.ask('a', { wait: false })).not.toEqual(['grant a.1']);
    group.send({ kind: 'relearn' });
    expect(group.ask('b', { wait: false })).toEqual(['grant b.1']);
    expect(group.ask('c', { wait: false })).toEqual(['grant c.1']);
  });
});

test('what was used of the limits is not given a second time', () => {
  const group = metered({ rpd: 2, perDayUsd: 10 });
  call(group, 'a', { usd: 4 });
  group.send({ kind: 'relearn' });
  expect(leftIn(group)).toMatchObject({ rpd: 1, reservedUsd: 4 });
});
