// What was learned of a scope stays where its calls go: to another instance, another id of the member, other kinds of grants.
import { expect, test } from 'vitest';
import { SCOPES_MAX } from '../../../src/core/parts/lessons.ts';
import { handedGroupOf } from '../../../src/core/hand-over.ts';
import { PREFETCHED_PACE_MIN, MOVE_SETTLE_MS } from '../../../src/core/words/settings.ts';
import type { UpstreamSignal } from '../../../src/core/words/signal.ts';
import { someMember, TestGroup } from '../../support/core-builders.ts';
import { isGranted } from '../../support/scope-calls.ts';

const PRO = { names: { model: 'pro' } };
const FLASH = { names: { model: 'flash' } };
const FULL: Partial<UpstreamSignal> = { kind: 'requests', scope: 'model', retryAfterMs: 20_000 };

/** Has calls of two models made, of which one is refused. */
function withFullPro(group: TestGroup, signal = FULL): TestGroup {
  group.ask('before', FLASH);
  group.release('before');
  group.ask('full', PRO);
  group.report('full', signal);
  group.release('full', 'failed');
  return group;
}

test('an object that takes over a pool holds the calls that the trial held', () => {
  const from = withFullPro(new TestGroup({ slotsMax: 4 }));
  from.ask('running', PRO);
  from.ask('other', FLASH);
  const to = new TestGroup({ slotsMax: 4 });
  to.send({
    kind: 'take_over',
    handed: structuredClone(handedGroupOf(from.state, from.now)),
    isNew: true,
    isRepeat: false,
    firstAttachment: 1_000_000,
  });
  to.advance(MOVE_SETTLE_MS);
  expect(isGranted(to, 'pro', PRO)).toBe(false);
  expect(isGranted(to, 'flash', FLASH)).toBe(true);
  expect(to.advance(20_000)).toContain('grant pro.1');
});

test('a member keeps its scopes under another id, and counts their calls', () => {
  const place = 'the key';
  const group = new TestGroup({ slotsMax: 8, members: [someMember('a', { slotsMax: 4, place })] });
  group.ask('running', PRO);
  withFullPro(group);
  group.reconfigure({ members: [someMember('b', { slotsMax: 4, place })] });
  expect(isGranted(group, 'pro', PRO)).toBe(false);
  expect(isGranted(group, 'flash', FLASH)).toBe(true);
  expect(group.member('b').controls.scopes.narrower).toHaveLength(1);
  expect(group.member('a').controls.scopes.narrower).toHaveLength(0);
  group.release('running');
  expect(group.advance(20_000)).toContain('grant pro.1');
});

test('a member under another id keeps all lessons over a reset', () => {
  const place = 'the key';
  const group = TestGroup.stored({ slotsMax: 8, members: [someMember('a', { place })] });
  withFullPro(group);
  group.ask('paused', FLASH);
  group.report('paused', { kind: 'requests', scope: 'upstream', retryAfterMs: 10_000 });
  group.release('paused', 'failed');
  group.reconfigure({ members: [someMember('b', { place })] });
  const { pause, scopes } = group.member('b').controls;
  const after = group.restart().member('b').controls;
  expect(after.pause.until).toBe(pause.until);
  expect(after.scopes).toEqual(scopes);
  expect(scopes.narrower).toHaveLength(1);
});

test('no slots are prefetched while a refusal holds calls, and prefetched slots are recalled', () => {
  const group = TestGroup.stored({ slotsMax: 40, isAdaptive: false });
  const often = { isolate: 'isolate', names: { model: 'pro' } };
  for (let calls = 0; calls < 2 * PREFETCHED_PACE_MIN; calls += 1) {
    group.ask(`often-${calls}`, often);
    group.write();
    group.release(`often-${calls}`);
  }
  expect(group.state.lending.growing.size).toBe(1);
  group.ask('full', PRO);
  const reported = group.report('full', { ...FULL, retryAfterMs: 5_000 });
  expect(reported.some((answer) => answer.startsWith('recalled '))).toBe(true);
  group.ask('flash', { ...FLASH, isolate: 'isolate' });
  expect(group.state.lending.growing.size).toBe(0);
});

test('a nested call uses the slot of its parent even if its scope is held', () => {
  const group = withFullPro(new TestGroup({ slotsMax: 4, nested: 'pass' }));
  expect(isGranted(group, 'parent', FLASH)).toBe(true);
  expect(isGranted(group, 'child', { ...PRO, parents: ['parent'] })).toBe(true);
  group.release('parent');
  expect(group.inUse()).toBe(1);
  group.release('child');
  expect(group.inUse()).toBe(0);
});

test('a dry run grants calls whose scope is held, and counts them as calls that would wait', () => {
  const group = withFullPro(new TestGroup({ slotsMax: 4, isDryRun: true }));
  expect(isGranted(group, 'pro', PRO)).toBe(true);
  expect(group.state.totals.wouldWait).toBe(1);
});

test('calls that wait in another group are not at the upstream of their scope before they are confirmed', () => {
  const group = new TestGroup({ slotsMax: 8 });
  withFullPro(group, { kind: 'concurrency', scope: 'model', slotsMax: 1 });
  expect(isGranted(group, 'away', { ...PRO, waitsElsewhere: true })).toBe(true);
  const [limiter] = group.member().scopes.values();
  const sums = limiter ?? group.member();
  expect([sums.slotsInUse, sums.slotsWaitingElsewhere]).toEqual([1, 1]);
  group.confirm('away');
  expect([sums.slotsInUse, sums.slotsWaitingElsewhere]).toEqual([1, 0]);
});

test('a call with more slots than its scope allows runs alone', () => {
  const group = new TestGroup({ slotsMax: 8 });
  group.ask('before', FLASH);
  for (const name of ['one', 'two', 'three']) group.ask(name, PRO);
  for (const name of ['three', 'two']) {
    group.report(name, { kind: 'concurrency', scope: 'model' });
    group.release(name, 'failed');
  }
  expect(isGranted(group, 'wide', { ...PRO, slots: 3 })).toBe(false);
  expect(isGranted(group, 'flash', { ...FLASH, slots: 3 })).toBe(true);
  expect(group.release('one')).toContain('grant wide.1');
});

test('one call probes a long pause of a scope, and ends it for all others of that scope', () => {
  const long = { kind: 'long_window', scope: 'model', retryAfterMs: 13_873_000 } as const;
  const group = withFullPro(new TestGroup({ slotsMax: 8, timeoutMs: 1e9 }), long);
  for (const name of ['one', 'two', 'three']) group.ask(name, { ...PRO, sliceMs: 1e9 });
  expect(group.advance(60_000)).toEqual(['grant one.1']);
  expect(isGranted(group, 'flash', FLASH)).toBe(true);
  // A served call of another model is no probe.
  expect(group.report('flash', { kind: 'served' })).toEqual([]);
  group.release('flash');
  group.report('one', long);
  expect(group.release('one', 'failed')).toEqual(['ended one.1']);
  expect(group.advance(60_000)).toEqual([]);
  expect(group.advance(60_000)).toEqual(['grant two.1']);
  expect(group.report('two', { kind: 'served' })).toContain('grant three.1');
});

test('scopes beyond the maximum replace those that were refused least recently', () => {
  const group = new TestGroup({ slotsMax: 4 });
  group.ask('before', PRO);
  const keyOf = (index: number) => ({ names: { model: 'pro', credential: `key-${index}` } });
  for (let index = 0; index < SCOPES_MAX + 1; index += 1) {
    group.ask(`call-${index}`, keyOf(index));
    group.report(`call-${index}`, { ...FULL, scope: 'credential', retryAfterMs: 3_600_000 });
    group.release(`call-${index}`, 'failed');
    // Or the next one would confirm it.
    group.ask(`served-${index}`, FLASH);
    group.report(`served-${index}`, { kind: 'served' });
    group.release(`served-${index}`);
  }
  expect(group.member().scopes.size).toBe(SCOPES_MAX);
  expect(isGranted(group, 'first', keyOf(0))).toBe(true);
  expect(isGranted(group, 'second', keyOf(1))).toBe(false);
});
