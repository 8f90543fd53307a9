// Scopes are bounded: which are forgotten first, what moves with them, and what is asked of the calls in them.
import { describe, expect, test } from 'vitest';
import { SCOPES_MAX } from '../../../src/core/parts/lessons.ts';
import { leftOf } from '../../../src/core/parts/rates.ts';
import type { UpstreamSignal } from '../../../src/core/words/signal.ts';
import { wantsAnswer } from '../../../src/core/upstream-signals.ts';
import { ticketId } from '../../../src/core/words/ids.ts';
import { HOLD_SAMPLES_MIN } from '../../../src/core/words/settings.ts';
import { START, TestGroup, type AskOptions } from '../../support/core-builders.ts';
import { isGranted, refuse, serve } from '../../support/scope-calls.ts';

const PRO = { names: { model: 'pro' }, caller: 'honest' };
const FLASH = { names: { model: 'flash' }, caller: 'honest' };

const FULL: Partial<UpstreamSignal> = { kind: 'requests', scope: 'model', retryAfterMs: 20_000 };
const HOUR: Partial<UpstreamSignal> = { ...FULL, retryAfterMs: 3_600_000 };
const DAY: Partial<UpstreamSignal> = { ...FULL, kind: 'long_window', retryAfterMs: 86_400_000 };

describe('a caller that makes up names', () => {
  const made = (of: 'model' | 'tier' | 'credential', index: number): AskOptions => ({
    names: { model: 'pro', [of]: `made-${index}` },
    caller: 'evil',
  });

  test.each([
    ['models', ['model'] as const],
    ['tiers', ['tier'] as const],
    ['keys', ['credential'] as const],
    ['all of them', ['model', 'tier', 'credential'] as const],
  ])('pushes out no pause of others, with %s', (_, kinds) => {
    const group = new TestGroup({ slotsMax: 8 });
    serve(group, 'before', FLASH);
    refuse(group, 'full', { names: { model: 'honest' }, caller: 'honest' }, DAY);
    refuse(group, 'key', { names: { credential: 'honest' }, caller: 'honest' }, DAY);
    for (let index = 0; index < 2 * SCOPES_MAX; index += 1) {
      const of = kinds[index % kinds.length] ?? 'model';
      refuse(group, `made-${index}`, made(of, index), DAY);
      // No other key confirms it.
      if (of === 'credential') group.advance(61_000);
    }
    expect(group.member().scopes.size).toBeLessThanOrEqual(SCOPES_MAX);
    const kept = group.member().controls.scopes.narrower.map(({ scope }) => scope);
    expect(kept.map((scope) => scope.model)).toContain('honest');
    expect(kept.map((scope) => scope.credential)).toContain('honest');
  });

  test('is recognized after a reset, too', () => {
    const group = TestGroup.stored({ slotsMax: 8 });
    serve(group, 'before', FLASH);
    refuse(group, 'full', { names: { model: 'honest' }, caller: 'honest' }, HOUR);
    refuse(group, 'other', { names: { model: 'honest-2' }, caller: 'honest' }, HOUR);
    for (let index = 0; index < SCOPES_MAX - 2; index += 1) {
      refuse(group, `made-${index}`, made('model', index), HOUR);
    }
    const after = group.restart();
    after.advance(2_000);
    for (let index = SCOPES_MAX; index < SCOPES_MAX + 8; index += 1) {
      refuse(after, `made-${index}`, made('model', index), HOUR);
    }
    expect(isGranted(after, 'held', { names: { model: 'honest' }, caller: 'honest' })).toBe(false);
  });
});

describe('when there are too many scopes', () => {
  function withMany(signalOf: (index: number) => Partial<UpstreamSignal>): TestGroup {
    const group = new TestGroup({ slotsMax: 8 });
    serve(group, 'before', FLASH);
    for (let index = 0; index < SCOPES_MAX; index += 1) {
      const options = { names: { model: `m${index}` }, caller: 'honest' };
      refuse(group, `call-${index}`, options, signalOf(index));
    }
    expect(group.member().scopes.size).toBe(SCOPES_MAX);
    return group;
  }

  const keptIn = (group: TestGroup): (string | null)[] =>
    group.member().controls.scopes.narrower.map(({ scope }) => scope.model);

  test('one that stops no calls is removed first, even if it was used last', () => {
    const group = withMany((index) => (index === 40 ? { kind: 'error', scope: 'model' } : HOUR));
    group.advance(1_000);
    serve(group, 'again', { names: { model: 'm40' }, caller: 'honest' });
    refuse(group, 'next', { names: { model: 'next' }, caller: 'honest' }, HOUR);
    expect(keptIn(group)).not.toContain('m40');
    expect(keptIn(group)).toContain('m0');
  });

  test('among those that stop calls, the least recently used one is removed', () => {
    const group = withMany(() => HOUR);
    group.advance(1_000);
    // It is held, which is a use.
    group.ask('held', { names: { model: 'm0' }, caller: 'honest' });
    refuse(group, 'next', { names: { model: 'next' }, caller: 'honest' }, HOUR);
    expect(keptIn(group)).toContain('m0');
    expect(keptIn(group)).not.toContain('m1');
  });
});

describe('an amount that a refusal of the only model removed from the limits', () => {
  const rates = { ...new TestGroup().state.settings.rates, rpm: 600 };
  const metered = { rates, isMetered: true, slotsMax: 200 };
  const levelOf = (group: TestGroup): number =>
    leftOf(group.state.controls.rates, rates, group.now).rpm ?? 0;
  const left = { dimension: 'requests', windowMs: 60_000, limit: 600, remaining: 0 } as const;
  const EMPTY = { ...FULL, hints: [{ ...left, resetMs: 60_000 }] };

  test.each([
    ['by its kind', FULL],
    ['by the headers of its answer', { ...EMPTY, kind: 'unknown' as const }],
    ['by both', EMPTY],
  ])('is not taken from another one, %s', (_, signal) => {
    const group = new TestGroup(metered);
    const before = levelOf(group);
    refuse(group, 'full', PRO, signal);
    expect(levelOf(group)).toBe(0);
    expect(isGranted(group, 'flash', FLASH)).toBe(true);
    // Two calls were made.
    expect(levelOf(group)).toBeCloseTo(before - 2, 3);
  });

  test('is restored only once, and only as far as it has not refilled', () => {
    const group = new TestGroup(metered);
    const full = levelOf(group);
    refuse(group, 'full', PRO, { ...FULL, retryAfterMs: 500 });
    group.advance(5_000);
    for (let index = 0; index < 40; index += 1) {
      expect(isGranted(group, `pro-${index}`, PRO)).toBe(true);
    }
    const level = levelOf(group);
    expect(isGranted(group, 'flash', FLASH)).toBe(true);
    const given = levelOf(group) - level + 1;
    expect(given).toBeGreaterThan(full / 2 - 3);
    expect(given).toBeLessThan(full / 2 + 3);
    expect(isGranted(group, 'third', { names: { model: 'third' } })).toBe(true);
    expect(levelOf(group)).toBeLessThan(full / 2 + level);
  });

  test('is restored after a reset, too', () => {
    const group = TestGroup.stored(metered);
    refuse(group, 'full', PRO, FULL);
    const after = group.restart();
    after.advance(2_000);
    const level = levelOf(after);
    expect(isGranted(after, 'flash', FLASH)).toBe(true);
    expect(levelOf(after)).toBeGreaterThan(level + 50);
  });

  test('stays removed while no other model is called', () => {
    const group = new TestGroup(metered);
    refuse(group, 'full', PRO, { ...FULL, retryAfterMs: 1_000 });
    group.advance(1_000);
    expect(levelOf(group)).toBeLessThan(10);
    serve(group, 'pro', PRO);
    expect(levelOf(group)).toBeLessThan(10);
  });
});

describe('a call reports its headers at once', () => {
  const isWanted = (group: TestGroup, name: string): boolean =>
    wantsAnswer(group.state, group.lease(name), group.now);

  test('if it is in a scope that is open, but not if it is in none', () => {
    const group = new TestGroup({ slotsMax: 8 });
    serve(group, 'before', FLASH);
    refuse(group, 'ill', PRO, { kind: 'overload', scope: 'model' });
    expect(isGranted(group, 'pro', PRO)).toBe(true);
    expect(isGranted(group, 'flash', FLASH)).toBe(true);
    expect(isWanted(group, 'pro')).toBe(true);
    expect(isWanted(group, 'flash')).toBe(false);
  });

  test('if it contradicts a refusal of another key', () => {
    const group = new TestGroup({ slotsMax: 8 });
    serve(group, 'before', FLASH);
    const evil = { names: { model: 'flash', credential: 'evil' }, caller: 'evil' };
    refuse(group, 'evil', evil, { ...HOUR, scope: 'credential' });
    expect(isGranted(group, 'flash', FLASH)).toBe(true);
    expect(isWanted(group, 'flash')).toBe(true);
    group.report('flash', { kind: 'served' });
    expect(isGranted(group, 'next', FLASH)).toBe(true);
    expect(isWanted(group, 'next')).toBe(false);
  });
});

describe('held calls', () => {
  /** Many calls of a full model wait, and calls of another one take a second each. */
  function withHeld(settings: ConstructorParameters<typeof TestGroup>[0] = {}): TestGroup {
    const group = new TestGroup({ slotsMax: 1, queueLengthMax: 1_000, ...settings });
    for (let index = 0; index < 12; index += 1) {
      const name = `flash-${index}`;
      expect(isGranted(group, name, FLASH)).toBe(true);
      group.advance(5_000);
      group.release(name);
    }
    refuse(group, 'full', PRO, DAY);
    group.reconfigure({ probesPauses: false });
    for (let index = 0; index < 40; index += 1) {
      group.ask(`pro-${index}`, { ...PRO, lane: index % 2 === 0 ? 'high' : 'normal' });
    }
    return group;
  }

  const PATIENT = { timeoutMs: 1e9 };

  test('do not count in the estimated wait of other calls', () => {
    const group = withHeld(PATIENT);
    expect(isGranted(group, 'running', FLASH)).toBe(true);
    const soon = group.now - START + 60_000;
    const answers = group.ask('flash', { ...FLASH, deadlineMs: soon });
    expect(answers.filter((answer) => answer.startsWith('reject'))).toEqual([]);
    expect(group.release('running')).toContain('grant flash.1');
  });

  test('do not keep other calls from being parked', () => {
    const group = withHeld(PATIENT);
    expect(isGranted(group, 'running', FLASH)).toBe(true);
    group.ask('flash', { ...FLASH, sliceMs: 30_000, mayAskLater: true });
    expect(group.state.queue.byTicket.size).toBe(41);
    expect(group.release('running')).toContain('grant flash.1');
  });
});

describe('a call that does not allow queueing', () => {
  const TOO_MANY = { kind: 'concurrency', scope: 'model', slotsMax: 2 } as const;

  test.each([
    ['where other models are called', true],
    ['where it is the only model', false],
  ])('is told the slots of its model, %s', (_, areOthers) => {
    const group = new TestGroup({ slotsMax: 20 });
    if (areOthers) serve(group, 'before', FLASH);
    for (const name of ['one', 'two', 'three', 'four']) {
      expect(isGranted(group, name, PRO)).toBe(true);
    }
    for (const name of ['three', 'four']) {
      group.report(name, TOO_MANY);
      group.release(name, 'failed');
    }
    group.ask('at-once', { ...PRO, wait: false });
    const scope = { model: 'pro', tier: null, credential: null };
    expect(group.rejection('at-once')).toMatchObject({ reason: 'busy', slotsMax: 2, scope });
    group.ask('queued', PRO);
    const { arrival } = group.state.queue.byTicket.get(ticketId('queued')) ?? {};
    expect(arrival).toMatchObject({ cause: 'slots', scope });
  });
});

describe('a call that waited in vain', () => {
  const scope = { model: 'pro', tier: null, credential: null };
  const TOO_MANY = { kind: 'concurrency', scope: 'model', slotsMax: 2 } as const;

  /** A group whose model `pro` takes two calls at once, and has them. */
  function limited(areOthers: boolean, slotsMax = 20): TestGroup {
    const group = new TestGroup({ slotsMax, timeoutMs: 600_000 }).learned();
    if (areOthers) serve(group, 'before', FLASH);
    for (const name of ['one', 'two', 'three', 'four']) {
      expect(isGranted(group, name, PRO)).toBe(true);
    }
    for (const name of ['three', 'four']) {
      group.report(name, TOO_MANY);
      group.release(name, 'failed');
    }
    return group;
  }

  test.each([
    ['where other models are called', true],
    ['where it is the only model', false],
  ])('is told which calls are limited, %s', (_, areOthers) => {
    const group = limited(areOthers);
    const soon = { ...PRO, deadlineMs: group.now - START + 5_000 };
    group.state.holdSamples = 0;
    group.ask('late', soon);
    group.advance(5_001);
    expect(group.rejection('late')).toMatchObject({ reason: 'queue_timeout', scope });
    for (let index = 0; index < 40; index += 1) group.ask(`ahead-${index}`, PRO);
    Object.assign(group.state, { holdSamples: HOLD_SAMPLES_MIN, holdMeanMs: 60_000 });
    group.ask('hopeless', { ...PRO, deadlineMs: group.now - START + 1_000 });
    expect(group.rejection('hopeless')).toMatchObject({ reason: 'infeasible', scope });
  });

  test('reports no scope if all slots are taken, or the call is not in the scope', () => {
    const group = limited(true, 4);
    for (const name of ['other-1', 'other-2']) {
      expect(isGranted(group, name, FLASH)).toBe(true);
    }
    group.state.holdSamples = 0;
    group.ask('late', { ...FLASH, deadlineMs: group.now - START + 5_000 });
    group.advance(5_001);
    expect(group.rejection('late')).toMatchObject({ reason: 'queue_timeout' });
    expect(group.rejection('late')).not.toHaveProperty('scope');
  });
});
