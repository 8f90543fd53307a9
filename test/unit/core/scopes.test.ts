// A refusal holds the calls that it is about: those of a model, a tier or a caller's own key. All others go on.
import { describe, expect, test } from 'vitest';
import { SCOPES_MAX } from '../../../src/core/parts/lessons.ts';
import type { RefusalKind, UpstreamSignal } from '../../../src/core/words/signal.ts';
import { someMember, TestGroup, type AskOptions } from '../../support/core-builders.ts';
import { isGranted, refuse, serve } from '../../support/scope-calls.ts';

const PRO = { names: { model: 'pro' } };
const FLASH = { names: { model: 'flash' } };
const FLEX = { names: { model: 'pro', tier: 'flex' } };
const keyOf = (credential: string): AskOptions => ({ names: { model: 'pro', credential } });

const FULL: Partial<UpstreamSignal> = { kind: 'requests', scope: 'model', retryAfterMs: 20_000 };

describe('a model that is full', () => {
  test('stops its own calls and no others', () => {
    const group = new TestGroup();
    serve(group, 'before', FLASH);
    refuse(group, 'full', PRO, FULL);
    expect(isGranted(group, 'pro', PRO)).toBe(false);
    expect(isGranted(group, 'flash', FLASH)).toBe(true);
    expect(group.advance(20_000)).toContain('grant pro.1');
  });

  test('stops its own calls if it is the only model so far, and a new model starts at once', () => {
    const group = new TestGroup();
    refuse(group, 'full', PRO, FULL);
    expect(isGranted(group, 'pro', PRO)).toBe(false);
    expect(isGranted(group, 'flash', FLASH)).toBe(true);
    expect(group.advance(20_000)).toContain('grant pro.1');
  });

  test('is recognized in any spelling of its name', () => {
    const group = new TestGroup();
    serve(group, 'before', FLASH);
    refuse(group, 'full', { names: { model: 'PRO' } }, FULL);
    expect(isGranted(group, 'pro', PRO)).toBe(false);
  });

  test('is skipped in any lane and at any age, and blocks no other call', () => {
    const group = new TestGroup({ slotsMax: 1 });
    serve(group, 'before', FLASH);
    refuse(group, 'full', PRO, FULL);
    group.ask('running', FLASH);
    group.ask('pro', { ...PRO, lane: 'high', enqueuedMs: -50_000 });
    group.ask('flash', { ...FLASH, lane: 'low' });
    expect(group.release('running')).toContain('grant flash.1');
  });

  test('stops no call of another model that has waited for a long time', () => {
    const waits = { sliceMs: 3_000_000, timeoutMs: 3_000_000 };
    const group = new TestGroup({ slotsMax: 1 });
    group.ask('full', PRO);
    group.ask('flash', { ...FLASH, ...waits });
    group.ask('pro', { ...PRO, ...waits });
    for (let minutes = 0; minutes < 11; minutes += 0.5) {
      group.advance(30_000);
      group.renew('full');
    }
    group.report('full', FULL);
    const effects = group.release('full', 'failed');
    expect(effects).toContain('grant flash.1');
  });

  test('does not lower the limits of the group', () => {
    const rates = { ...new TestGroup().state.settings.rates, rpm: 600 };
    const group = new TestGroup({ rates, isMetered: true });
    serve(group, 'before', FLASH);
    group.advance(1_000);
    const used = { dimension: 'requests', windowMs: 60_000, limit: 600, remaining: 0 } as const;
    expect(isGranted(group, 'full', PRO)).toBe(true);
    const left = JSON.stringify(group.state.controls.rates);
    group.report('full', { ...FULL, hints: [{ ...used, resetMs: 60_000 }] });
    expect(JSON.stringify(group.state.controls.rates)).toBe(left);
  });

  test('opens its own breaker', () => {
    const group = new TestGroup({ slotsMax: 20 });
    serve(group, 'before', FLASH);
    for (let index = 0; index < 10; index += 1) {
      refuse(group, `ill-${index}`, PRO, { kind: 'overload', scope: 'model' });
    }
    expect(isGranted(group, 'pro', PRO)).toBe(false);
    expect(isGranted(group, 'flash', FLASH)).toBe(true);
    // One call probes it.
    const { breaker } = group.member().controls.scopes.narrower[0] ?? {};
    expect(group.advance((breaker?.openUntil ?? 0) - group.now)).toContain('grant pro.1');
    expect(isGranted(group, 'other', PRO)).toBe(false);
  });

  test('has its own ceiling, and its concurrent calls are counted separately', () => {
    const group = new TestGroup({ slotsMax: 20 });
    serve(group, 'before', FLASH);
    for (let index = 0; index < 4; index += 1) {
      expect(isGranted(group, `pro-${index}`, PRO)).toBe(true);
      expect(isGranted(group, `flash-${index}`, FLASH)).toBe(true);
    }
    const tooMany = { kind: 'concurrency', scope: 'model' } as const;
    group.report('pro-3', tooMany);
    group.release('pro-3', 'failed');
    group.report('pro-2', tooMany);
    group.release('pro-2', 'failed');
    expect(isGranted(group, 'pro-4', PRO)).toBe(false);
    expect(isGranted(group, 'flash-4', FLASH)).toBe(true);
    expect(group.release('pro-0')).toContain('grant pro-4.1');
  });

  test('rejects calls that cannot wait, but no calls of other models', () => {
    const group = new TestGroup();
    serve(group, 'before', FLASH);
    refuse(group, 'full', PRO, FULL);
    group.ask('pro', { ...PRO, deadlineMs: 5_000 });
    expect(group.rejection('pro').reason).toBe('upstream_limited');
    group.ask('at-once', { ...PRO, wait: false });
    expect(group.rejection('at-once').reason).toBe('upstream_limited');
  });

  test('is still full after a reset', () => {
    const group = TestGroup.stored();
    serve(group, 'before', FLASH);
    refuse(group, 'full', PRO, FULL);
    const after = group.restart();
    after.advance(1_000);
    expect(isGranted(after, 'pro', PRO)).toBe(false);
    expect(isGranted(after, 'flash', FLASH)).toBe(true);
  });

  test('does not lower the limits of the group', () => {
    const rates = { ...new TestGroup().state.settings.rates, rpm: 600 };
    const group = new TestGroup({ rates, isMetered: true });
    serve(group, 'before', FLASH);
    group.advance(1_000);
    const used = { dimension: 'requests', windowMs: 60_000, limit: 600, remaining: 0 } as const;
    expect(isGranted(group, 'full', PRO)).toBe(true);
    const left = JSON.stringify(group.state.controls.rates);
    group.report('full', { ...FULL, hints: [{ ...used, resetMs: 60_000 }] });
    expect(JSON.stringify(group.state.controls.rates)).toBe(left);
  });

  test('is forgotten when an operator resets what the group has learned', () => {
    const group = new TestGroup();
    serve(group, 'before', FLASH);
    refuse(group, 'full', PRO, FULL);
    group.send({ kind: 'relearn' });
    expect(isGranted(group, 'pro', PRO)).toBe(true);
  });
});

describe('a full queue', () => {
  test.each([
    ['of the group', { queueLengthMax: 3 }],
    ['of the tenant', { queueLengthMaxEach: 3 }],
  ])('%s drops the youngest call of a stopped model for one that can move on', (_, bound) => {
    const group = new TestGroup({ slotsMax: 1, ...bound });
    serve(group, 'before', FLASH);
    refuse(group, 'full', PRO, { ...FULL, retryAfterMs: 20_000 });
    expect(isGranted(group, 'long', FLASH)).toBe(true);
    for (const name of ['p1', 'p2', 'p3']) group.ask(name, PRO);
    expect(group.ask('p4', PRO)).toEqual(['reject p4 queue_full']);
    expect(group.ask('f1', FLASH)).toEqual(['reject p3 queue_full']);
    expect(group.ask('f2', FLASH)).toEqual(['reject p2 queue_full']);
    expect(group.waiting()).toEqual(['p1', 'f1', 'f2']);
    expect(group.release('long')).toContain('grant f1.1');
  });

  test('of calls of a stopped model accepts calls that can start at once', () => {
    const group = new TestGroup({ slotsMax: 2, queueLengthMax: 2 });
    serve(group, 'before', FLASH);
    refuse(group, 'full', PRO, { ...FULL, retryAfterMs: 20_000 });
    for (const name of ['p1', 'p2']) group.ask(name, PRO);
    expect(isGranted(group, 'flash', FLASH)).toBe(true);
    expect(group.waiting()).toEqual(['p1', 'p2']);
  });
});

describe('a call that names no model', () => {
  const NAMELESS = { names: { model: null } };

  test.each([true, false])(
    'stops only calls without a model (after another model: %s)',
    (isAfter) => {
      const group = new TestGroup();
      if (isAfter) serve(group, 'before', FLASH);
      refuse(group, 'full', NAMELESS, FULL);
      expect(isGranted(group, 'same', NAMELESS)).toBe(false);
      expect(isGranted(group, 'pro', PRO)).toBe(true);
    },
  );

  test('is not stopped by a model', () => {
    const group = new TestGroup();
    refuse(group, 'full', PRO, FULL);
    expect(isGranted(group, 'nameless', NAMELESS)).toBe(true);
  });

  test('stops all calls if the refusal is about the key', () => {
    const group = new TestGroup();
    refuse(group, 'full', NAMELESS, { ...FULL, scope: 'credential' });
    expect(isGranted(group, 'pro', PRO)).toBe(false);
  });
});

describe('a call whose body was not read', () => {
  test('is asked for its names while calls are held by names, and is not queued', () => {
    const group = new TestGroup();
    refuse(group, 'full', PRO, FULL);
    const unread = { names: { model: null, isUnread: true } };
    expect(group.ask('unread', unread)).toEqual(['unread unread']);
    expect(group.state.queue.byTicket.size).toBe(0);
    expect(isGranted(group, 'unread', FLASH)).toBe(true);
  });

  test('is granted unread if no call is held by names', () => {
    const group = new TestGroup();
    expect(isGranted(group, 'one', { names: { isUnread: true } })).toBe(true);
    group.report('one', { ...FULL, scope: 'credential' });
    expect(group.ask('two', { names: { isUnread: true } })).not.toContain('unread two');
  });

  test('is granted unread again when the pause is over', () => {
    const group = new TestGroup();
    serve(group, 'flash', FLASH);
    refuse(group, 'full', PRO, { kind: 'unknown', scope: 'model' });
    const unread = { names: { model: null, isUnread: true } };
    expect(group.ask('during', unread)).toEqual(['unread during']);
    group.advance(5_100);
    expect(group.state.members.values().next().value?.scopes.size).toBe(1);
    expect(isGranted(group, 'after', unread)).toBe(true);
  });

  test('that is served does not shorten the next pause of a model', () => {
    const group = new TestGroup();
    serve(group, 'flash', FLASH);
    refuse(group, 'full', PRO, { kind: 'unknown', scope: 'model' });
    group.advance(5_100);
    serve(group, 'unread', { names: { model: null, isUnread: true } });
    refuse(group, 'again', PRO, { kind: 'unknown', scope: 'model' });
    group.advance(1_500);
    expect(isGranted(group, 'pro', PRO)).toBe(false);
  });

  test('and that is queued is asked for its names once a model is stopped, and keeps its place', () => {
    const group = new TestGroup({ slotsMax: 1 });
    const unread = { names: { model: null, isUnread: true } };
    expect(isGranted(group, 'first', unread)).toBe(true);
    for (const name of ['a', 'b', 'c']) group.ask(name, unread);
    const reported = group.report('first', { ...FULL, names: { model: 'pro', tier: null } });
    expect(reported).toEqual(['unread a', 'unread b', 'unread c']);
    group.release('first', 'failed');
    expect(group.ask('c', FLASH)).toEqual(['grant c.1']);
    expect(group.ask('a', PRO)).toEqual([]);
    expect(group.ask('b', FLASH)).toEqual([]);
    expect(group.waiting()).toEqual(['a', 'b']);
    expect(group.release('c')).toContain('grant b.1');
  });

  test('reports its names with its refusal', () => {
    const group = new TestGroup();
    expect(isGranted(group, 'one', { names: { isUnread: true } })).toBe(true);
    group.report('one', { ...FULL, names: { model: 'pro', tier: null } });
    group.release('one', 'failed');
    expect(isGranted(group, 'pro', PRO)).toBe(false);
    expect(isGranted(group, 'flash', FLASH)).toBe(true);
  });

  test('that names a tier holds no queued call of the standard tier', () => {
    const group = new TestGroup({ slotsMax: 1 });
    expect(isGranted(group, 'flex', { names: { model: null, isUnread: true } })).toBe(true);
    group.ask('standard', PRO);
    const names = { model: 'pro', tier: 'flex' };
    group.report('flex', { kind: 'overload', scope: 'tier', retryAfterMs: 20_000, names });
    expect(group.release('flex', 'failed')).toContain('grant standard.1');
  });
});

describe('a service tier', () => {
  const NO_ROOM = { kind: 'overload', scope: 'tier' } as const;

  test('never stops the standard tier', () => {
    const group = new TestGroup({ slotsMax: 8 });
    serve(group, 'before', PRO);
    for (let index = 0; index < 14; index += 1) {
      if (!isGranted(group, `flex-${index}`, FLEX)) continue;
      group.report(`flex-${index}`, NO_ROOM);
      group.release(`flex-${index}`, 'failed');
    }
    expect(group.member().controls.breaker.phase).toBe('closed');
    for (let index = 0; index < 8; index += 1) {
      expect(isGranted(group, `standard-${index}`, PRO)).toBe(true);
    }
  });

  test('that is full and answers 429 is reported as a rate limit, with the message of the upstream', () => {
    const words = 'Resource Unavailable';
    const asRate = { ...NO_ROOM, isRate: true, words } as const;
    const group = new TestGroup({ slotsMax: 20 });
    serve(group, 'before', PRO);
    for (let index = 0; index < 10; index += 1) refuse(group, `flex-${index}`, FLEX, asRate);
    group.ask('at-once', { ...FLEX, wait: false });
    expect(group.rejection('at-once')).toMatchObject({ reason: 'upstream_limited', words });
    // Without a 429, it is reported as a failure of the upstream.
    const { breaker } = group.member().controls.scopes.narrower[0] ?? {};
    group.advance((breaker?.openUntil ?? 0) - group.now);
    refuse(group, 'probe', FLEX, NO_ROOM);
    group.ask('later', { ...FLEX, wait: false });
    expect(group.rejection('later').reason).toBe('breaker_open');
  });

  test('that is full, answers 429 and names a wait is reported as a rate limit', () => {
    const group = new TestGroup({ slotsMax: 20 });
    serve(group, 'before', PRO);
    refuse(group, 'flex', FLEX, { ...NO_ROOM, isRate: true, retryAfterMs: 20_000 });
    group.ask('at-once', { ...FLEX, wait: false });
    expect(group.rejection('at-once').reason).toBe('upstream_limited');
  });

  test('is what all its refusals are about, except errors', () => {
    const group = new TestGroup();
    serve(group, 'before', PRO);
    refuse(group, 'flex', FLEX, { kind: 'unknown', scope: 'model', retryAfterMs: 9_000 });
    expect(isGranted(group, 'standard', PRO)).toBe(true);
    expect(isGranted(group, 'another', FLEX)).toBe(false);
  });
});

describe('a refusal of one call', () => {
  test('holds no other call', () => {
    const group = new TestGroup();
    refuse(group, 'odd', PRO, { kind: 'unknown', scope: 'call', retryAfterMs: 9_000 });
    expect(isGranted(group, 'other', PRO)).toBe(true);
  });
});

describe("a caller's own key", () => {
  const PAUSED: Partial<UpstreamSignal> = {
    kind: 'long_window',
    scope: 'credential',
    retryAfterMs: 86_400_000,
  };

  test.each<[RefusalKind, Partial<UpstreamSignal>]>([
    ['requests', {}],
    ['tokens', {}],
    ['unknown', {}],
    ['long_window', {}],
    ['overload', { scope: 'upstream' }],
    ['ramp', {}],
  ])('that is refused (%s) stops only calls with that key', (kind, changes) => {
    const group = new TestGroup();
    serve(group, 'honest', keyOf('honest'));
    refuse(group, 'evil', keyOf('evil'), { ...PAUSED, kind, ...changes });
    expect(isGranted(group, 'evil-2', keyOf('evil'))).toBe(false);
    expect(isGranted(group, 'honest-2', keyOf('honest'))).toBe(true);
    expect(isGranted(group, 'operator', PRO)).toBe(true);
  });

  test('that comes first stops no later key', () => {
    const group = new TestGroup();
    refuse(group, 'evil', keyOf('evil'), PAUSED);
    expect(isGranted(group, 'evil-2', keyOf('evil'))).toBe(false);
    expect(isGranted(group, 'honest', keyOf('honest'))).toBe(true);
    expect(isGranted(group, 'evil-3', keyOf('evil'))).toBe(false);
  });

  test('that comes first keeps no slot from a later key after it failed', () => {
    const group = new TestGroup({ slotsMax: 2, failureCooldownMs: 2_000 });
    for (const id of ['one', 'two']) expect(isGranted(group, id, keyOf('evil'))).toBe(true);
    for (const id of ['one', 'two']) {
      group.report(id, { kind: 'error', scope: 'upstream' });
      group.release(id, 'failed');
    }
    group.ask('evil', { ...keyOf('evil'), wait: false });
    expect(group.rejection('evil').reason).toBe('busy');
    for (const id of ['three', 'four']) expect(isGranted(group, id, keyOf('honest'))).toBe(true);
  });

  test('of a broken account opens only its own breaker, and lowers only its own ceiling', () => {
    const group = new TestGroup({ slotsMax: 30 });
    serve(group, 'honest', keyOf('honest'));
    for (let index = 0; index < 12; index += 1) {
      if (!isGranted(group, `evil-${index}`, keyOf('evil'))) break;
      const kind = index % 2 === 0 ? 'error' : 'overload';
      group.report(`evil-${index}`, { kind, scope: 'upstream' });
      group.release(`evil-${index}`, 'failed');
    }
    expect(isGranted(group, 'evil', keyOf('evil'))).toBe(false);
    for (let index = 0; index < 20; index += 1) {
      expect(isGranted(group, `honest-${index}`, keyOf('honest'))).toBe(true);
    }
  });

  test('frees its slot when its call fails', () => {
    const group = new TestGroup({ slotsMax: 1, failureCooldownMs: 20_000 });
    serve(group, 'honest', keyOf('honest'));
    refuse(group, 'evil', keyOf('evil'), { kind: 'error', scope: 'upstream' });
    expect(isGranted(group, 'honest-2', keyOf('honest'))).toBe(true);
  });

  test('applies to the group when a second key confirms it within a minute', () => {
    const group = new TestGroup();
    serve(group, 'honest', keyOf('honest'));
    refuse(group, 'one', keyOf('one'), PAUSED);
    group.advance(59_000);
    refuse(group, 'two', keyOf('two'), PAUSED);
    expect(isGranted(group, 'three', keyOf('three'))).toBe(false);
  });

  test.each([
    ['a minute later', (group: TestGroup) => group.advance(60_001)],
    ['after another was served', (group: TestGroup) => serve(group, 'served', keyOf('honest'))],
  ])('does not when that comes %s', (_, meanwhile) => {
    const group = new TestGroup();
    serve(group, 'honest', keyOf('honest'));
    refuse(group, 'one', keyOf('one'), PAUSED);
    meanwhile(group);
    refuse(group, 'two', keyOf('two'), PAUSED);
    expect(isGranted(group, 'three', keyOf('three'))).toBe(true);
  });

  test('does not lower the limits of the group', () => {
    const rates = { ...new TestGroup().state.settings.rates, rpm: 600 };
    const group = new TestGroup({ rates, isMetered: true });
    serve(group, 'honest', keyOf('honest'));
    group.advance(1_000);
    const used = { dimension: 'requests', windowMs: 60_000, limit: 600, remaining: 0 } as const;
    const hints = [{ ...used, resetMs: 60_000 }];
    expect(isGranted(group, 'evil', keyOf('evil'))).toBe(true);
    const left = JSON.stringify(group.state.controls.rates);
    group.report('evil', { ...PAUSED, kind: 'requests', hints });
    expect(JSON.stringify(group.state.controls.rates)).toBe(left);
  });

  test.each(['served', 'quota', 'never_fits', 'requests'] as const)(
    'does not use up the limits of the first other key: %s',
    (kind) => {
      const rates = { ...new TestGroup().state.settings.rates, rpm: 600 };
      const group = new TestGroup({ rates, isMetered: true });
      const used = { dimension: 'requests', windowMs: 60_000, limit: 600, remaining: 0 } as const;
      group.ask('evil', keyOf('evil'));
      group.report('evil', { kind, hints: [{ ...used, resetMs: 60_000 }], scope: 'credential' });
      group.release('evil');
      expect(isGranted(group, 'honest', { ...keyOf('honest'), wait: false })).toBe(true);
    },
  );

  test('whose answers ask for a wait holds only its own calls', () => {
    const group = new TestGroup();
    serve(group, 'honest', keyOf('honest'));
    group.ask('evil', keyOf('evil'));
    group.report('evil', { kind: 'served', retryAfterMs: 9_000 });
    group.release('evil');
    expect(isGranted(group, 'evil-2', keyOf('evil'))).toBe(false);
    expect(isGranted(group, 'honest-2', keyOf('honest'))).toBe(true);
  });
});

describe('errors of several models', () => {
  test('apply to the whole upstream', () => {
    const group = new TestGroup({ slotsMax: 20 });
    for (let index = 0; index < 12; index += 1) {
      const options = index % 2 === 0 ? PRO : FLASH;
      if (!isGranted(group, `call-${index}`, options)) break;
      group.report(`call-${index}`, { kind: 'error', scope: 'model' });
      group.release(`call-${index}`, 'failed');
    }
    expect(group.member().controls.breaker.phase).toBe('open');
    expect(isGranted(group, 'third', { names: { model: 'third' } })).toBe(false);
  });
});

describe('a group with members', () => {
  const members = [someMember('a'), someMember('b')];

  test('sends a call to the member whose model has room', () => {
    const group = new TestGroup({ slotsMax: 8, members });
    expect(isGranted(group, 'full', PRO)).toBe(true);
    const at = group.lease('full').member;
    group.report('full', FULL);
    group.release('full', 'failed');
    for (const name of ['one', 'two']) {
      expect(isGranted(group, name, PRO)).toBe(true);
      expect(group.lease(name).member).not.toBe(at);
    }
    // The other one is full, and nobody behind it waits for this one.
    expect(isGranted(group, 'three', PRO)).toBe(false);
    expect(isGranted(group, 'flash', FLASH)).toBe(true);
    expect(group.lease('flash').member).toBe(at);
  });

  test('starts calls of other models that queued while a member with a full model was away', () => {
    const group = new TestGroup({ slotsMax: 8, members: [someMember('a')] });
    refuse(group, 'full', PRO, FULL);
    group.reconfigure({ members: [someMember('b', { slotsMax: 0 })] });
    expect(isGranted(group, 'pro', PRO)).toBe(false);
    expect(isGranted(group, 'flash', FLASH)).toBe(false);
    const effects = group.reconfigure({ members: [someMember('a')] });
    expect(effects).toContain('grant flash.1');
    expect(effects).not.toContain('grant pro.1');
    expect(group.advance(20_000)).toContain('grant pro.1');
  });
});

test('a pause that is longer than an hour is not forgotten', () => {
  const group = new TestGroup();
  serve(group, 'before', FLASH);
  const signal = { kind: 'long_window', scope: 'model', retryAfterMs: 86_400_000 } as const;
  refuse(group, 'full', PRO, signal);
  group.reconfigure({ probesPauses: false });
  group.advance(2 * 3_600_000);
  serve(group, 'after', FLASH);
  expect(isGranted(group, 'pro', PRO)).toBe(false);
});

test('the most recently refused scopes are kept, up to the maximum', () => {
  const group = new TestGroup();
  serve(group, 'before', PRO);
  for (let index = 0; index < SCOPES_MAX + 3; index += 1) {
    refuse(group, `evil-${index}`, keyOf(`evil-${index}`), { ...FULL, retryAfterMs: 600_000 });
    group.advance(61_000);
  }
  const { narrower } = group.member().controls.scopes;
  expect(narrower.length).toBeLessThanOrEqual(SCOPES_MAX);
  expect(narrower.map(({ scope }) => scope.credential)).toContain(`evil-${SCOPES_MAX + 2}`);
});
