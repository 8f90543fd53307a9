// Answers to calls that a limit of the upstream stops, and probes of long waits.
import { afterAll, describe, expect, it } from 'vitest';
import { nothingLeaks, pool } from '../support/pool.ts';
import { call } from '../support/worker.ts';
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
  untilGroup,
  type LimitsStage,
} from './stage.ts';

afterAll(nothingLeaks);

const MINUTE_MS = 60_000;
const AT_ONCE = { 'headgate-max-wait': '0' };

const LIMITED = { status: 429, reason: 'upstream_limited' };

/** A stage whose upstream has just named a wait of hours. */
async function usedUp(group = {}): Promise<LimitsStage> {
  const stage = await newStage({ group });
  await stage.strict.failNext('long_window');
  expect(await reportedBy(send(stage, 'first'))).toMatchObject({ status: 429, reason: null });
  await untilGroup(stage, { in_use: 0, pause: expect.anything() });
  return stage;
}

describe('the refusal', () => {
  it.each([
    [
      'openai',
      'v1/chat/completions',
      { error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' } },
    ],
    [
      'openai',
      'v1/responses',
      { error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' } },
    ],
    ['anthropic', 'v1/messages', { type: 'error', error: { type: 'rate_limit_error' } }],
    [
      'gemini',
      'v1beta/models/m:generateContent',
      { error: { code: 429, status: 'RESOURCE_EXHAUSTED' } },
    ],
    ['ollama', 'api/chat', { error: expect.stringContaining('Its message: ') }],
  ] as const)(
    'in the dialect %s at %s is that of a limit, with the words of the upstream',
    async (dialect, path, body) => {
      const stage = await usedUp();
      const message = (await statusOf(stage)).pause?.message ?? 'none';
      await configureStage(stage, { upstream: { dialect } });
      const json = { model: 'm', messages: [] };
      const response = await call(`/${stage.upstream}/${path}`, { json, headers: AT_ONCE });
      expect(response.status).toBe(429);
      expect(response.headers.get('headgate-reason')).toBe('upstream_limited');
      expect(response.headers.get('x-should-retry')).toBe('false');
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(3_000);
      const text = await response.text();
      expect(text).toContain(JSON.stringify(message).slice(1, -1));
      expect(JSON.parse(text)).toMatchObject(body);
    },
  );

  it('after a refusal and a timeout in the queue has the message of the upstream', async () => {
    const stage = await newStage({
      settings: { limit: 1 },
      group: { limits: { max_concurrency: 2 } },
    });
    const holding = await streaming(stage, 'holding');
    const json = { model: 'm', messages: [{ role: 'user', content: 'refused' }] };
    const response = await call(stage.chat, { json, headers: { 'headgate-max-wait': '2' } });
    expect(response.status).toBe(429);
    expect(response.headers.get('headgate-reason')).toBe('queue_timeout');
    expect(await response.text()).toContain('The upstream refused an earlier attempt');
    await finish(stage, holding);
  });

  it('for an operator’s pause is a 503', async () => {
    const stage = await usedUp();
    await configureStage(stage, { group: { paused: true } });
    const reported = reportedBy(send(stage, 'next', { headers: AT_ONCE }));
    expect(await reported).toMatchObject({ status: 503, reason: 'paused' });
  });

  it('for an overloaded upstream that names a wait is a 503', async () => {
    const stage = await newStage();
    const headers = { 'x-strict-fail': 'overload', 'x-strict-fail-wait-ms': '20000' };
    expect(await reportedBy(send(stage, 'one', { headers }))).toMatchObject({ reason: null });
    await untilGroup(stage, { in_use: 0 });
    const reported = reportedBy(send(stage, 'next', { headers: AT_ONCE }));
    expect(await reported).toMatchObject({ status: 503, reason: 'paused' });
  });
});

it('an overload with status 429 rejects the next calls with 429', async () => {
  const id = 'moonshot';
  const stage = await newStage({ settings: { refusal: id }, upstream: { id, dialect: 'openai' } });
  const headers = { ...AT_ONCE, 'x-strict-fail': 'overload' };
  for (let at = 0; at < 10; at += 1) {
    expect(await reportedBy(send(stage, `call-${at}`, { headers }))).toMatchObject({ status: 429 });
    await untilGroup(stage, { in_use: 0 });
  }
  expect(await statusOf(stage)).toMatchObject({ breaker: 'open' });
  expect(await reportedBy(send(stage, 'next', { headers: AT_ONCE }))).toMatchObject(LIMITED);
});

describe('a wait of hours', () => {
  it('sends only one of ten successive calls to the upstream', async () => {
    const stage = await usedUp();
    for (let at = 0; at < 9; at += 1) {
      expect(await reportedBy(send(stage, `call-${at}`))).toMatchObject(LIMITED);
    }
    expect(await arrived(stage)).toEqual(['first']);
  });

  it('is probed after one minute and two more, and ends when a probe is served', async () => {
    const stage = await usedUp();
    await later(stage, MINUTE_MS);
    await stage.strict.failNext('long_window');
    expect(await reportedBy(send(stage, 'probe'))).toMatchObject({ status: 429, reason: null });
    await untilGroup(stage, { in_use: 0 });
    await later(stage, MINUTE_MS);
    expect(await reportedBy(send(stage, 'early'))).toMatchObject(LIMITED);
    await later(stage, MINUTE_MS);
    expect(await reportedBy(send(stage, 'second probe'))).toEqual(served(1));
    await untilGroup(stage, { in_use: 0 });
    expect((await statusOf(stage)).paused_until).toBeNull();
    expect(await reportedBy(send(stage, 'after'))).toEqual(served(1));
    expect(await arrived(stage)).toEqual(['first', 'probe', 'second probe', 'after']);
  });

  it('is not probed if the group disables probes', async () => {
    const stage = await usedUp({ probe: 'off' });
    await later(stage, 20 * MINUTE_MS);
    expect(await reportedBy(send(stage, 'next'))).toMatchObject(LIMITED);
    expect((await statusOf(stage)).pause?.probe_at).toBeNull();
  });

  it('is shown with the message of the upstream and the next probe, and causes one warning', async () => {
    const stage = await usedUp();
    const { pause, paused_until: until } = await statusOf(stage);
    expect(pause?.message).toMatch(/\w/);
    const probeMs = Date.parse(pause?.probe_at ?? '') - Date.now();
    expect(probeMs).toBeGreaterThan(0);
    expect(probeMs).toBeLessThanOrEqual(MINUTE_MS);
    await later(stage, MINUTE_MS);
    await stage.strict.failNext('long_window');
    await reportedBy(send(stage, 'probe'));
    await untilGroup(stage, { in_use: 0 });
    const warnings = await pool(stage.group).warnings();
    const long = warnings.filter(({ kind }) => kind === 'pause_long');
    expect(long).toHaveLength(1);
    expect(long[0]?.message).toContain(until ?? '');
    expect(long[0]?.message).toContain(pause?.message ?? '');
  });
});
