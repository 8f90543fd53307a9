// The breaker of a group, over the wire: it opens after failures, single calls probe whether the upstream
// is back, and no probe can keep it from closing. And the cool-downs of slots.
import { afterAll, describe, expect, it } from 'vitest';
import { NO_COOLDOWN, nothingLeaks, pool } from '../support/pool.ts';
import { strictScope } from '../support/strict.ts';
import { passTime } from '../support/time.ts';
import { call, configure, until } from '../support/worker.ts';
import {
  arrived,
  configureStage,
  finish,
  later,
  newStage,
  send,
  served,
  statusOf,
  streaming,
  reportedBy,
  untilArrived,
  untilGroup,
  type LimitsStage,
  type StageFields,
} from './stage.ts';

afterAll(nothingLeaks);

/** How many failures open it. It stays open for 15 s and a tenth of that at the most. */
const FAILURES = 10;
const OPEN_MS = 16_500;

const AT_ONCE = { 'headgate-max-wait': '0' };

/** A group whose breaker is open. */
async function broken(fields: StageFields = {}): Promise<LimitsStage> {
  const stage = await newStage(fields);
  await stage.strict.failNext('error', FAILURES);
  for (let at = 0; at < FAILURES; at += 1) {
    expect(await statusOf(stage)).toMatchObject({ breaker: 'closed' });
    expect(await reportedBy(send(stage, 'fails'))).toMatchObject({ status: 500 });
    await untilGroup(stage, { in_use: 0, refusals_total: { error: at + 1 } });
  }
  await untilGroup(stage, { breaker: 'open' });
  return stage;
}

/** Lists what reached the upstream after the failures. */
async function arrivedSince(stage: LimitsStage): Promise<(string | null)[]> {
  return (await arrived(stage)).slice(FAILURES);
}

const DIALECTS = [
  ['openai', 'v1/chat/completions', { error: { type: 'server_error', code: 'breaker_open' } }],
  ['anthropic', 'v1/messages', { type: 'error', error: { type: 'api_error' } }],
  ['gemini', 'v1beta/models/m:generateContent', { error: { code: 503, status: 'UNAVAILABLE' } }],
] as const;

describe('after failures the breaker is open', () => {
  it('and a call whose deadline comes before its end is told so at once, in its dialect', async () => {
    const stage = await broken();
    for (const [dialect, path, body] of DIALECTS) {
      await configureStage(stage, { upstream: { dialect } });
      for (const wait of ['0', '5s']) {
        const headers = { 'headgate-max-wait': wait };
        const response = await call(`/${stage.upstream}/${path}`, {
          json: { model: 'm' },
          headers,
        });
        expect(response.status).toBe(503);
        expect(response.headers.get('headgate-reason')).toBe('breaker_open');
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(5);
        expect(await response.json()).toMatchObject(body);
      }
    }
    expect(await arrivedSince(stage)).toEqual([]);
  });

  it('and other calls wait for its end: one probes, and the rest goes on when it was served', async () => {
    const stage = await broken();
    const headers = { 'x-strict-silent-after-chunks': '1' };
    const calls = ['a', 'b', 'c', 'd', 'e'].map((label) =>
      send(stage, label, { stream: true, headers }),
    );
    await untilGroup(stage, { queued: 5 });
    await stage.strict.configure({ firstByteDelayMs: 300 });
    await later(stage, OPEN_MS);
    expect(await statusOf(stage)).toMatchObject({ breaker: 'half_open', in_use: 1, queued: 4 });
    // Its body goes on and on: its first byte is what counts.
    await untilGroup(stage, { in_use: 5, queued: 0, breaker: 'closed' });
    await stage.strict.configure({ firstByteDelayMs: 0 });
    await finish(stage, ...calls);
    expect((await stage.strict.stats()).arrivals.slice(FAILURES)).toHaveLength(5);
  });

  it('and a call that would not go to it any more is refused while it waits', async () => {
    const stage = await newStage({
      group: { limits: { max_concurrency: 1 }, queue: { lane_max: 'high' } },
    });
    const holder = await streaming(stage, 'holder');
    const one = send(stage, 'one', { headers: { 'headgate-max-wait': '14s' } });
    await untilGroup(stage, { queued: 1 });
    // The holder's end is a result too. One more failure would wait for its turn to probe.
    const failures = FAILURES - 1;
    await stage.strict.failNext('error', failures);
    const fails = Array.from({ length: failures }, () =>
      send(stage, 'fails', { headers: { 'headgate-lane': 'high' } }),
    );
    await untilGroup(stage, { queued: failures + 1 });
    await finish(stage, holder);
    for (const each of fails) expect(await reportedBy(each)).toMatchObject({ status: 500 });
    expect(await reportedBy(one)).toMatchObject({ status: 503, reason: 'breaker_open' });
  });
});

describe('its settings', () => {
  const fail = (stage: LimitsStage, label: string) => reportedBy(send(stage, label));

  it('open it after fewer calls, and for the set time', async () => {
    const breaker = { min_calls: 2, hold_ms: 60_000 };
    const stage = await newStage({ group: { breaker } });
    await stage.strict.failNext('error', 2);
    expect(await fail(stage, 'one')).toMatchObject({ status: 500 });
    expect(await fail(stage, 'two')).toMatchObject({ status: 500 });
    await untilGroup(stage, { breaker: 'open' });
    await later(stage, OPEN_MS);
    const early = send(stage, 'early', { headers: AT_ONCE });
    expect(await reportedBy(early)).toMatchObject({ status: 503, reason: 'breaker_open' });
    await later(stage, 60_000);
    expect(await reportedBy(send(stage, 'late'))).toEqual(served(1));
  });

  it('open it at another share of failures', async () => {
    const stage = await newStage({ group: { breaker: { min_calls: 4, threshold: 0.75 } } });
    for (const label of ['one', 'two']) {
      expect(await reportedBy(send(stage, label))).toEqual(served(1));
    }
    for (let failed = 1; failed <= 6; failed += 1) {
      expect(await statusOf(stage)).toMatchObject({ breaker: 'closed' });
      await stage.strict.failNext('error', 1);
      expect(await fail(stage, 'fails')).toMatchObject({ status: 500 });
      await untilGroup(stage, { in_use: 0, refusals_total: { error: failed } });
    }
    await untilGroup(stage, { breaker: 'open' });
  });

  it('forget results sooner', async () => {
    const stage = await newStage({ group: { breaker: { min_calls: 3, window_ms: 10_000 } } });
    for (let failed = 1; failed <= 5; failed += 1) {
      if (failed === 3) await later(stage, 11_000);
      expect(await statusOf(stage)).toMatchObject({ breaker: 'closed' });
      await stage.strict.failNext('error', 1);
      expect(await fail(stage, 'fails')).toMatchObject({ status: 500 });
      await untilGroup(stage, { in_use: 0, refusals_total: { error: failed } });
    }
    await untilGroup(stage, { breaker: 'open' });
  });

  it('bound how long it stays open after probes that fail', async () => {
    const breaker = { min_calls: 2, hold_ms: 10_000, hold_max_ms: 15_000 };
    const stage = await newStage({ group: { breaker } });
    await stage.strict.failNext('error', 4);
    for (const label of ['one', 'two']) {
      expect(await fail(stage, label)).toMatchObject({ status: 500 });
    }
    await untilGroup(stage, { breaker: 'open' });
    await later(stage, 11_000);
    for (const probe of ['first', 'second']) {
      expect(await fail(stage, probe)).toMatchObject({ status: 500 });
      await untilGroup(stage, { breaker: 'open', in_use: 0 });
      await later(stage, 12_000);
      const early = send(stage, 'early', { headers: AT_ONCE });
      expect(await reportedBy(early)).toMatchObject({ status: 503, reason: 'breaker_open' });
      // Without the maximum it would stay open for 20 s, and then for 40 s.
      await later(stage, 4_500);
    }
    expect(await reportedBy(send(stage, 'late'))).toEqual(served(1));
  });

  it('apply only to the calls of their group, also at a shared upstream', async () => {
    const strict = await strictScope('limits');
    const upstream = 'shared';
    const group = (name: string, breaker: object) => ({
      name,
      match: { upstreams: [upstream], models: [name] },
      limits: { max_concurrency: 8 },
      holds: NO_COOLDOWN,
      breaker,
    });
    await configure({
      upstreams: [{ id: upstream, base_url: strict.url }],
      groups: [
        group('strict', { min_calls: 2, hold_ms: 60_000 }),
        group('lenient', { min_calls: 4, hold_ms: 5_000 }),
        group('off', { threshold: null }),
        { ...group('all', {}), match: { upstreams: [upstream] } },
      ],
    });
    const of = (name: string): LimitsStage => ({
      strict,
      upstream,
      group: name,
      chat: `/${upstream}/v1/chat/completions`,
    });
    const ask = (model: string) => reportedBy(send(of(model), model, { model, headers: AT_ONCE }));
    const failing = async (model: string, count: number) => {
      await strict.failNext('error', count);
      for (let at = 0; at < count; at += 1) {
        expect(await ask(model)).toMatchObject({ status: 500 });
        await untilGroup(of(model), { in_use: 0 });
      }
    };
    const states = async () =>
      Promise.all(
        ['strict', 'lenient', 'off', 'all'].map(async (name) => (await statusOf(of(name))).breaker),
      );
    await failing('lenient', 2);
    await failing('off', 6);
    expect(await states()).toEqual(['closed', 'closed', 'closed', 'closed']);
    await failing('strict', 2);
    await untilGroup(of('strict'), { breaker: 'open' });
    expect(await ask('strict')).toMatchObject({ status: 503, reason: 'breaker_open' });
    for (const model of ['lenient', 'off']) expect(await ask(model)).toEqual(served(1));
    await failing('lenient', 1);
    await untilGroup(of('lenient'), { breaker: 'open' });
    expect(await states()).toEqual(['open', 'open', 'closed', 'closed']);
    passTime(6_000);
    expect(await ask('lenient')).toEqual(served(1));
    expect(await ask('strict')).toMatchObject({ status: 503, reason: 'breaker_open' });
  });

  it('disable it, and close it if it is open', async () => {
    const stage = await broken();
    await configureStage(stage, { group: { breaker: { threshold: null } } });
    await untilGroup(stage, { breaker: 'closed' });
    await stage.strict.failNext('error', FAILURES);
    for (let at = 0; at < FAILURES; at += 1) {
      expect(await fail(stage, 'fails')).toMatchObject({ status: 500 });
    }
    expect(await reportedBy(send(stage, 'served'))).toEqual(served(1));
  });
});

describe('a probe', () => {
  /** A call that probes, and whose upstream has not answered yet. */
  async function probing() {
    const stage = await broken();
    await later(stage, OPEN_MS);
    const probe = send(stage, 'probe', { headers: { 'x-strict-first-byte-delay-ms': '60000' } });
    await untilArrived(stage, FAILURES + 1);
    await untilGroup(stage, { breaker: 'half_open', in_use: 1 });
    return { stage, probe };
  }

  it('that fails opens the breaker for twice as long', async () => {
    const stage = await broken();
    await later(stage, OPEN_MS);
    await stage.strict.failNext('error');
    expect(await reportedBy(send(stage, 'probe'))).toMatchObject({ status: 500 });
    await untilGroup(stage, { breaker: 'open' });
    await later(stage, OPEN_MS);
    const early = send(stage, 'early', { headers: AT_ONCE });
    expect(await reportedBy(early)).toMatchObject({ status: 503, reason: 'breaker_open' });
    await later(stage, OPEN_MS);
    expect(await reportedBy(send(stage, 'late'))).toEqual(served(1));
  });

  it('is one at a time; one whose caller leaves gives its permit to the next', async () => {
    const { stage, probe } = await probing();
    const others = ['a', 'b', 'c'].map((label) => send(stage, label));
    await untilGroup(stage, { queued: 3, in_use: 1 });
    expect(await arrivedSince(stage)).toEqual(['probe']);
    probe.leave();
    for (const other of others) expect(await reportedBy(other)).toEqual(served(1));
    await untilGroup(stage, { breaker: 'closed' });
  });

  it('whose upstream refuses it for its rate gives its permit back', async () => {
    const stage = await broken();
    await later(stage, OPEN_MS);
    await stage.strict.failNext('requests');
    const probe = send(stage, 'probe');
    await untilGroup(stage, { refusals_total: { error: FAILURES, requests: 1 } });
    await later(stage, 1_000);
    expect(await reportedBy(probe)).toEqual(served(2));
  });

  it('that is served with a warning in its headers counts as served in the wider group too', async () => {
    const strict = await strictScope('limits');
    const limits = { max_concurrency: 8 };
    await configure({
      upstreams: [{ id: 'openai', base_url: strict.url }],
      groups: [
        {
          name: 'warned',
          match: { upstreams: ['openai'], models: ['m'] },
          limits,
          holds: NO_COOLDOWN,
        },
        { name: 'wider', match: { upstreams: ['openai'] }, limits, holds: NO_COOLDOWN },
      ],
    });
    const stage = {
      strict,
      upstream: 'openai',
      group: 'wider',
      chat: '/openai/v1/chat/completions',
    };
    // A connection that breaks is about the whole upstream.
    await strict.failNext('reset', FAILURES);
    for (let at = 0; at < FAILURES; at += 1) await reportedBy(send(stage, 'fails'));
    await untilGroup(stage, { breaker: 'open', in_use: 0 });
    passTime(OPEN_MS);
    const rates = { '*': { rpm: 1_000, algorithm: 'fixed' } };
    await strict.configure({ rates, sendsLimitHeaders: true, liesInHeaders: true });
    for (const label of ['a', 'b', 'c']) {
      expect(await reportedBy(send(stage, label))).toEqual(served(1));
      await untilGroup(stage, { in_use: 0 });
      await until(async () => expect((await pool('warned').status()).paused_until).toBeNull());
    }
    await untilGroup(stage, { breaker: 'closed' });
  });
});

describe('a slot cools down', () => {
  const ways = [
    ['after a call that ended well', 'release_cooldown_ms', {}],
    ['after one whose caller left', 'cancel_cooldown_ms', {}],
    ['after a refusal', 'failure_hold_ms', { 'x-strict-fail': 'concurrency', ...AT_ONCE }],
    ['after a 5xx', 'failure_hold_ms', { 'x-strict-fail': 'error' }],
  ] as const;

  it.each(ways)('%s', async (_, field, headers) => {
    const holds = { ...NO_COOLDOWN, [field]: 20_000 };
    const stage = await newStage({ group: { limits: { max_concurrency: 1 }, holds } });
    if (field === 'cancel_cooldown_ms') {
      const one = await streaming(stage, 'one');
      one.leave();
    } else {
      await reportedBy(send(stage, 'one', { headers }));
    }
    await untilGroup(stage, { in_use: 0, cooling: 1 });
    const next = send(stage, 'next');
    await untilGroup(stage, { in_use: 0, cooling: 1, queued: 1 });
    expect(await arrived(stage)).toEqual(['one']);
    await later(stage, 20_000);
    expect(await reportedBy(next)).toEqual(served(1));
    await later(stage, 20_000);
  });

  it.each(['success', 'cancel', 'failure'])('for no time where that is 0: %s', async (way) => {
    const stage = await newStage({ group: { limits: { max_concurrency: 1 } } });
    const headers = way === 'failure' ? { 'x-strict-fail': 'error' } : {};
    if (way === 'cancel') (await streaming(stage, 'one')).leave();
    else await reportedBy(send(stage, 'one', { headers }));
    expect(await reportedBy(send(stage, 'next'))).toEqual(served(1));
  });

  it.each(['egress', 'quota', 'never_fits'])(
    'for no time after a refusal for its own sake: %s',
    async (kind) => {
      const holds = { ...NO_COOLDOWN, failure_hold_ms: 20_000 };
      const stage = await newStage({ group: { limits: { max_concurrency: 1 }, holds } });
      await reportedBy(send(stage, 'one', { headers: { 'x-strict-fail': kind } }));
      expect(await reportedBy(send(stage, 'next'))).toEqual(served(1));
    },
  );
});
