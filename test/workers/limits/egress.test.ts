// An upstream that serves nobody from where the Worker calls: no wait mends that, and no limit has to do with it.
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { FailedAttempts } from '../../../src/runtime/origin.ts';
import { EGRESS_FORMS, egressAnswer } from '../../strict-upstream/egress.ts';
import { nothingLeaks } from '../support/pool.ts';
import { passTime, stopTime } from '../support/time.ts';
import { admin, call, configure, until } from '../support/worker.ts';
import {
  arrived,
  finish,
  newStage,
  send,
  served,
  statusOf,
  streaming,
  reportedBy,
  untilGroup,
  type LimitsStage,
} from './stage.ts';

afterEach(() => vi.restoreAllMocks());

afterAll(nothingLeaks);

const refusedAs = (form: string) => ({ 'x-strict-egress-refused': form });

/** Lines of the log that speak of it, from now on. */
function logged(): readonly Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => {
    expect(line).not.toMatch(/secret question|sk-never/);
    const event = JSON.parse(line) as Record<string, unknown>;
    if (String(event['event']).startsWith('upstream_refused')) lines.push(event);
  });
  return lines;
}

const refuseOne = (stage: LimitsStage, form = 'address', cf?: object): Promise<Response> =>
  call(stage.chat, {
    json: { model: 'm', messages: [{ role: 'user', content: 'a secret question' }] },
    headers: { authorization: 'Bearer sk-never-logged', ...refusedAs(form) },
    ...(cf === undefined ? {} : ({ cf } as object)),
  });

describe('the caller hears what the upstream said', () => {
  it.each(EGRESS_FORMS)('as it said it, and not to try again: %s', async (form) => {
    const stage = await newStage({ group: { retries: { max: 2 } } });
    const response = await refuseOne(stage, form);
    const { status, body, headers } = egressAnswer(form, 'openai');
    expect(response.status).toBe(status);
    expect(await response.text()).toBe(body);
    expect(response.headers.get('content-type')).toBe(headers['content-type']);
    expect(response.headers.get('x-should-retry')).toBe('false');
    expect(response.headers.get('headgate-reason')).toBeNull();
    expect(response.headers.get('headgate-tries')).toBe('1');
    expect((await stage.strict.stats()).total).toBe(1);
    await untilGroup(stage, { in_use: 0, cooling: 0 });
    expect((await statusOf(stage)).refusals_total).toEqual({ egress: 1 });
  });

  it('in the form of Gemini', async () => {
    const stage = await newStage({ upstream: { dialect: 'gemini' } });
    const response = await call(`/${stage.upstream}/v1beta/models/m:generateContent`, {
      json: { contents: [{ parts: [{ text: 'hello' }] }] },
      headers: refusedAs('region'),
    });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('User location is not supported');
    await untilGroup(stage, { in_use: 0 });
    expect((await statusOf(stage)).refusals_total).toEqual({ egress: 1 });
  });
});

describe('the log', () => {
  it('says where it was and what to set, once a minute of each upstream', async () => {
    stopTime();
    const one = await newStage();
    const upstreams = [one.upstream, 'other-place'].map((id) => ({ id, base_url: one.strict.url }));
    await configure({ upstreams });
    const two = { ...one, upstream: 'other-place', chat: '/other-place/v1/chat/completions' };
    const lines = logged();
    await (await refuseOne(one, 'address', { colo: 'HKG' })).text();
    for (const form of EGRESS_FORMS) await (await refuseOne(one, form)).text();
    const set: unknown = expect.stringContaining('[placement] in wrangler.toml');
    const event = { event: 'upstream_refused_egress', level: 'warn' };
    const first = {
      ...event,
      upstream: one.upstream,
      status: 403,
      colo: 'HKG',
      upstream_colo: 'HKG',
      set,
    };
    expect(lines).toEqual([first]);
    // Hosted by oneself there is no such place.
    await (await refuseOne(two, 'region')).text();
    const other = {
      ...event,
      upstream: two.upstream,
      status: 403,
      colo: null,
      upstream_colo: null,
      set,
    };
    expect(lines.slice(1)).toEqual([other]);
    passTime(59_000);
    await (await refuseOne(one)).text();
    expect(lines).toHaveLength(2);
    passTime(2_000);
    await (await refuseOne(one)).text();
    expect(lines).toHaveLength(3);
  });

  it('says nothing of a key that may not do something', async () => {
    const stage = await newStage();
    const lines = logged();
    const response = await call(stage.chat, {
      json: { model: 'm', messages: [] },
      headers: { 'x-strict-status': '403' },
    });
    expect(response.status).toBe(403);
    await response.text();
    expect(lines).toEqual([]);
    expect((await statusOf(stage)).refusals_total).toEqual({});
  });
});

it('operators are warned, and the metrics count it', async () => {
  const stage = await newStage();
  for (let times = 0; times < 3; times += 1) await (await refuseOne(stage)).text();
  await until(async () => {
    const { json } = await admin('GET', `/groups/${stage.group}/warnings`);
    expect(json.warnings).toMatchObject([{ kind: 'egress_refused', group: stage.group }]);
  });
  const response = await call('/metrics', {
    headers: { authorization: 'Bearer test-metrics-token' },
  });
  const lines = (await response.text()).split('\n').filter((line) => line.includes(stage.group));
  expect(lines.filter((line) => line.includes('kind="egress')).toSorted()).toEqual([
    expect.stringMatching(/^headgate_\w*refus\w*\{.*kind="egress".*\} 3$/),
    expect.stringMatching(/^headgate_warnings_total\{.*kind="egress_refused".*\} 1$/),
  ]);
});

describe('it says nothing', () => {
  it('against slots, ceiling, breaker and pauses, however often it comes', async () => {
    const holds = { failure_hold_ms: 20_000 };
    const stage = await newStage({ group: { limits: { max_concurrency: 2 }, holds } });
    for (let times = 0; times < 25; times += 1) {
      await (await refuseOne(stage, EGRESS_FORMS[times % EGRESS_FORMS.length])).text();
    }
    await untilGroup(stage, { in_use: 0 });
    expect(await statusOf(stage)).toMatchObject({
      cooling: 0,
      breaker: 'closed',
      paused_until: null,
      limit: { effective: 2, source: 'configured' },
      refusals_total: { egress: 25 },
    });
    expect(await reportedBy(send(stage, 'next'))).toEqual(served(1));
    expect(await arrived(stage)).toContain('next');
  });

  it('against what is left of tokens and budget: what was set aside is given back', async () => {
    const prices = { '*': { input: 2, output: 10 } };
    const limits = { tpm: 60_000, budget_usd: { per_day: 100 } };
    const stage = await newStage({ group: { limits }, upstream: { prices } });
    await finish(stage, await streaming(stage, 'first'));
    await untilGroup(stage, { in_use: 0 });
    stopTime();
    const before = await statusOf(stage);

    await reportedBy(send(stage, 'refused', { headers: refusedAs('address') }));
    await untilGroup(stage, { in_use: 0 });
    const after = await statusOf(stage);
    expect(after).toMatchObject({ rates: before.rates, spend: before.spend });
  });

  it('against the key, which nobody has looked at', async () => {
    const stage = await newStage();
    const counted = vi.spyOn(FailedAttempts.prototype, 'count');
    await (await refuseOne(stage)).text();
    expect(counted).not.toHaveBeenCalled();
    const headers = { authorization: 'Bearer sk-wrong', 'x-strict-status': '403' };
    await (await call(stage.chat, { json: { model: 'm', messages: [] }, headers })).text();
    expect(counted).toHaveBeenCalledOnce();
  });
});
