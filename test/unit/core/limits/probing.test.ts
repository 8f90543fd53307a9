import { describe, expect, test } from 'vitest';
import { LEASE_TTL_MS } from '../../../../src/core/words/settings.ts';
import { wantsServed } from '../../../../src/core/upstream-signals.ts';
import { START, TestGroup } from '../../../support/core-builders.ts';

/** The breaker of a group: it opens, is probed with single calls, and closes. */

const sliceMs = 600_000;

/** It stays open so long at first, and up to a tenth longer. */
const OPEN_MS = 15_000;

/** A group whose breaker has just opened, with nobody in it. */
function brokenGroup(settings = {}): TestGroup {
  const group = new TestGroup({ slotsMax: 20, timeoutMs: 600_000, isAdaptive: false, ...settings });
  for (let index = 0; index < 10; index += 1) {
    group.ask(`bad-${index}`, { sliceMs });
    group.report(`bad-${index}`, { kind: 'error' });
    group.release(`bad-${index}`, 'failed');
  }
  return group;
}

/** Waits until the breaker lets a probe pass, which is granted at once. */
function probedGroup(settings = {}): TestGroup {
  const group = brokenGroup(settings);
  group.ask('probe', { sliceMs });
  group.advance(group.wakesIn());
  group.lease('probe');
  return group;
}

function phaseOf(group: TestGroup): string {
  return group.state.controls.breaker.phase;
}

describe('open', () => {
  test('nothing is granted until its end, and the group wakes for it', () => {
    const group = brokenGroup();
    expect(group.ask('a', { sliceMs })).toEqual([]);
    const openMs = group.wakesIn();
    expect(openMs).toBeGreaterThanOrEqual(OPEN_MS);
    expect(openMs).toBeLessThanOrEqual(1.1 * OPEN_MS);
    expect(group.advance(openMs - 1)).toEqual([]);
    expect(group.advance(1)).toEqual(['grant a.1']);
  });

  test('it stays as long as the upstream asks for, if that is longer', () => {
    const group = new TestGroup({ slotsMax: 20, timeoutMs: 600_000 });
    for (let index = 0; index < 10; index += 1) group.ask(`bad-${index}`, { sliceMs });
    for (let index = 0; index < 10; index += 1) {
      group.report(`bad-${index}`, { kind: 'error', retryAfterMs: 60_000 });
      group.release(`bad-${index}`, 'failed');
    }
    group.ask('a', { sliceMs });
    expect(group.state.roomDueAt - group.now).toBe(60_000);
  });

  test('who cannot wait for its end is rejected at once', () => {
    const group = brokenGroup();
    expect(group.ask('a', { wait: false })).toEqual(['reject a breaker_open']);
    expect(group.ask('b', { deadlineMs: 14_999 })).toEqual(['reject b breaker_open']);
    expect(group.rejection('b').retryAfterMs).toBeGreaterThanOrEqual(0.8 * OPEN_MS);
    expect(group.ask('c', { isTry: true })[0]).toMatch(/^declined c for 1[2-8]\d{3}$/);
    expect(group.ask('e', { deadlineMs: 16_600 })).toEqual([]);
  });

  test('who waits already and cannot wait for its end is let go when it opens', () => {
    const group = new TestGroup({ slotsMax: 10, timeoutMs: 600_000, isAdaptive: false });
    for (let index = 0; index < 10; index += 1) group.ask(`bad-${index}`, { sliceMs });
    group.ask('short', { deadlineMs: 10_000 });
    group.ask('long', { sliceMs });
    for (let index = 0; index < 9; index += 1) group.report(`bad-${index}`, { kind: 'error' });
    expect(group.report('bad-9', { kind: 'error' })).toEqual(['reject short breaker_open']);
    expect(group.waiting()).toEqual(['long']);
  });

  test('beside a shorter pause it is what waiters are measured by', () => {
    const group = new TestGroup({ slotsMax: 10, timeoutMs: 600_000 });
    for (let index = 0; index < 10; index += 1) group.ask(`bad-${index}`, { sliceMs });
    group.ask('short', { deadlineMs: 10_000 });
    for (let index = 0; index < 9; index += 1) group.report(`bad-${index}`, { kind: 'error' });
    const last = { kind: 'overload', retryAfterMs: 1_000 } as const;
    expect(group.report('bad-9', last)).toEqual(['reject short breaker_open']);
  });

  test('a call that passes on the slot of its parent is no probe, and ends nothing', () => {
    const group = new TestGroup({ slotsMax: 10, nested: 'pass', isAdaptive: false });
    for (let index = 0; index < 10; index += 1) group.ask(`bad-${index}`, { sliceMs });
    for (let index = 0; index < 10; index += 1) group.report(`bad-${index}`, { kind: 'error' });
    expect(group.ask('child', { parents: ['bad-0'] })).toEqual(['grant child.1']);
    expect(phaseOf(group)).toBe('open');
    group.report('child', { kind: 'served' });
    expect(phaseOf(group)).toBe('open');
  });

  test('a dry run lets everybody pass, and nobody is a probe', () => {
    const group = brokenGroup({ isDryRun: true });
    expect(group.ask('a')).toEqual(['grant a.1']);
    expect(phaseOf(group)).toBe('open');
  });
});

describe('half open', () => {
  test('one call probes, and the others wait for what it brings', () => {
    const group = probedGroup();
    for (const name of ['a', 'b', 'c']) group.ask(name, { sliceMs });
    expect(group.waiting()).toEqual(['a', 'b', 'c']);
    expect(phaseOf(group)).toBe('half_open');
    expect(wantsServed(group.member(), group.now)).toBe(true);
    expect(group.report('probe', { kind: 'served' })).toEqual([
      'grant a.1',
      'grant b.1',
      'grant c.1',
    ]);
  });

  test('three that were served close it, at their headers and not at their ends', () => {
    const group = probedGroup();
    for (const name of ['a', 'b', 'c']) group.ask(name, { sliceMs });
    for (const name of ['probe', 'a', 'b']) group.report(name, { kind: 'served' });
    expect(phaseOf(group)).toBe('closed');
    expect(group.inUse()).toBe(4);
  });

  test('a probe that fails opens it for twice as long, and lets impatient waiters go', () => {
    const group = probedGroup();
    group.ask('short', { deadlineMs: group.now - START + 2 * OPEN_MS - 1, sliceMs });
    group.ask('long', { sliceMs });
    expect(group.report('probe', { kind: 'error' })).toEqual(['reject short breaker_open']);
    expect(group.state.roomDueAt - group.now).toBeGreaterThanOrEqual(2 * OPEN_MS);
  });

  test.each<[string, (group: TestGroup) => string[]]>([
    ['is released without a word', (group) => group.release('probe', 'failed')],
    ['was never used', (group) => group.release('probe', 'unused')],
    ['was granted to nobody', (group) => group.cancel('probe')],
    ['is cut short', (group) => group.release('probe', 'cancelled')],
    ['is dropped', (group) => group.detach('probe', group.lease('probe').attachment)],
    [
      'meets another refusal',
      (group) => {
        group.report('probe', { kind: 'quota' });
        return group.release('probe', 'failed');
      },
    ],
  ])('a probe that %s gives its permit to the next', (_, work) => {
    const group = probedGroup();
    group.ask('next', { sliceMs });
    expect(work(group)).toEqual(['ended probe.1', 'grant next.1']);
    expect(phaseOf(group)).toBe('half_open');
  });

  test('a probe that lapses has failed, and waiters are let go like after any', () => {
    const group = probedGroup();
    const endsMs = group.now - START + LEASE_TTL_MS;
    group.ask('short', { deadlineMs: endsMs + 2 * OPEN_MS - 1, sliceMs });
    group.ask('next', { sliceMs });
    expect(group.advance(LEASE_TTL_MS)).toEqual(['ended probe.1', 'reject short breaker_open']);
    expect(phaseOf(group)).toBe('open');
    expect(group.advance(2 * OPEN_MS - 1)).toEqual([]);
    expect(group.advance(0.1 * 2 * OPEN_MS + 1)).toEqual(['grant next.1']);
  });

  test('how a probe ends after it was served changes nothing', () => {
    const group = probedGroup();
    group.report('probe', { kind: 'served' });
    group.release('probe', 'cancelled');
    expect(phaseOf(group)).toBe('half_open');
    expect(group.ask('next')).toEqual(['grant next.1']);
  });

  test('calls of before it opened neither close nor open it', () => {
    const group = new TestGroup({ slotsMax: 20, timeoutMs: 600_000, isAdaptive: false });
    group.askAll('old-good', 'old-bad');
    for (let index = 0; index < 10; index += 1) {
      group.ask(`bad-${index}`, { sliceMs });
      group.report(`bad-${index}`, { kind: 'error' });
      group.release(`bad-${index}`, 'failed');
    }
    group.ask('probe', { sliceMs });
    group.advance(group.wakesIn());
    group.report('old-good', { kind: 'served' });
    group.report('old-bad', { kind: 'error' });
    expect(phaseOf(group)).toBe('half_open');
    expect(group.ask('next', { sliceMs })).toEqual([]);
  });
});

test('calls that only end well count too: ten failures among a hundred calls open nothing', () => {
  const group = new TestGroup({ slotsMax: 100, timeoutMs: 600_000, isAdaptive: false });
  for (let index = 0; index < 100; index += 1) group.ask(`call-${index}`, { sliceMs });
  for (let index = 0; index < 100; index += 1) {
    const isBad = index % 10 === 9;
    if (isBad) group.report(`call-${index}`, { kind: 'error' });
    group.release(`call-${index}`, isBad ? 'failed' : 'success');
  }
  expect(phaseOf(group)).toBe('closed');
});

describe('a probe that still waits in a wider group', () => {
  function waitingProbe(): TestGroup {
    const group = brokenGroup();
    group.ask('waits', { waitsElsewhere: true, sliceMs });
    group.advance(group.wakesIn());
    expect(group.lease('waits').waitsElsewhere).toBe(true);
    return group;
  }

  test('leaves its permit to others, who close the breaker meanwhile', () => {
    const group = waitingProbe();
    for (const name of ['a', 'b', 'c']) {
      expect(group.ask(name)).toEqual([`grant ${name}.1`]);
      group.report(name, { kind: 'served' });
    }
    expect(phaseOf(group)).toBe('closed');
  });

  test('takes it when it goes out', () => {
    const group = waitingProbe();
    group.confirm('waits');
    expect(phaseOf(group)).toBe('half_open');
    expect(group.ask('a', { sliceMs })).toEqual([]);
    group.report('waits', { kind: 'served' });
    expect(group.inUse()).toBe(2);
  });

  test('fails like any other when it went out', () => {
    const group = waitingProbe();
    group.report('waits', { kind: 'error' });
    expect(phaseOf(group)).toBe('open');
  });

  test('never goes out: nothing was probed', () => {
    const group = waitingProbe();
    group.release('waits', 'unused');
    expect(group.state.controls.breaker).toMatchObject({ phase: 'open', probes: [] });
    expect(group.ask('a')).toEqual(['grant a.1']);
  });

  test('is the only one that waits there, or all of them would go out at once', () => {
    const group = waitingProbe();
    expect(group.ask('too', { waitsElsewhere: true, sliceMs })).toEqual([]);
    expect(group.ask('a')).toEqual(['grant a.1']);
    expect(group.confirm('waits')).toEqual([]);
    expect(group.report('a', { kind: 'served' })).toEqual(['grant too.1']);
  });
});
