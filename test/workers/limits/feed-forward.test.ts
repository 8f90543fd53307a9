// Limit headers of served calls: the next call waits instead of taking the refusal. The upstream writes
// some of them as instants of its own clock, so nobody shifts ours here.
import { afterAll, describe, expect, it } from 'vitest';
import { limitsOf, type Sending } from '../../../src/call/answer/sending.ts';
import { nothingLeaks } from '../support/pool.ts';
import {
  pausedMs,
  reportedBy,
  reporting,
  send,
  served,
  statusOf,
  untilGroup,
  type StageFields,
} from './stage.ts';

afterAll(nothingLeaks);

const WINDOW_MS = 700;

/** One request per window, after which nothing is left. */
const ONE = { rpm: 1, tpm: 1_000_000, windowMs: WINDOW_MS };

const openai = { id: 'openai' };

describe('after a call that leaves nothing of a limit', () => {
  it.each([
    ['openai', 'v1/chat/completions'],
    ['anthropic', 'v1/messages'],
    ['cerebras', 'v1/chat/completions'],
  ])('the next one waits, and nobody is refused: %s', async (id, path) => {
    const stage = await reporting(ONE, { settings: { refuseAs: id }, upstream: { id } });
    const labels = ['one', 'two'];
    for (const label of labels) {
      expect(await reportedBy(send(stage, label, { path: `/${id}/${path}` }))).toEqual(served(1));
    }
    const { arrivals, rejected429 } = await stage.strict.stats();
    expect(rejected429).toBe(0);
    expect((arrivals[1]?.at ?? 0) - (arrivals[0]?.at ?? 0)).toBeGreaterThanOrEqual(WINDOW_MS);
    expect(await statusOf(stage)).toMatchObject({ refusals_total: {} });
  });

  it('the next one takes the refusal where the headers are ignored', async () => {
    const window = { ...ONE, windowMs: 5_000 };
    const stage = await reporting(window, { upstream: { ...openai, limit_headers: 'ignore' } });
    expect(await reportedBy(send(stage, 'one'))).toEqual(served(1));
    expect(pausedMs(await statusOf(stage))).toBe(0);
    expect(await reportedBy(send(stage, 'two'))).toEqual(served(2));
    expect((await stage.strict.stats()).refused).toEqual({ requests: 1 });
  });

  it('the whole group waits, until enough has come back', async () => {
    const tokens = { tpm: 1_000, windowMs: 600_000, algorithm: 'bucket' };
    const stage = await reporting(tokens, { upstream: openai });
    const headers = { 'x-strict-input-tokens': '990' };
    expect(await reportedBy(send(stage, 'one', { headers }))).toEqual(served(1));
    // A twentieth of the tokens of ten minutes comes back in half a minute.
    await untilGroup(stage, { in_use: 0 });
    const ms = pausedMs(await statusOf(stage));
    expect(ms).toBeGreaterThan(0);
    expect(ms).toBeLessThanOrEqual(30_000);
    const impatient = send(stage, 'two', { headers: { 'headgate-max-wait': '0' } });
    expect(await reportedBy(impatient)).toMatchObject({ status: 429, reason: 'upstream_limited' });
    expect((await stage.strict.stats()).total).toBe(1);
  });
});

describe('headers that say that nothing is left, whatever is', () => {
  const lies = { liesInHeaders: true };
  // One of a minute would be so near its end at times that nobody need wait for it.
  const hour = { rpm: 2, windowMs: 3_600_000, algorithm: 'fixed' };

  it.each<[string, StageFields, boolean]>([
    ['of a provider known for it', { upstream: { id: 'together' } }, false],
    ['that the operator ignores', { upstream: { ...openai, limit_headers: 'ignore' } }, false],
    ['of an upstream that nobody knows', {}, false],
    ['of one that is known', { upstream: openai }, true],
    ['that the operator believes', { upstream: { limit_headers: 'use' } }, true],
  ])('%s', async (_, fields, isBelieved) => {
    const { id = 'openai' } = fields.upstream ?? {};
    const refuseAs = id === 'together' ? id : 'openai';
    const group = { feed_forward: { wait_max_ms: 30_000 } };
    const stage = await reporting(hour, { ...fields, group, settings: { ...lies, refuseAs } });
    expect(await reportedBy(send(stage, 'one'))).toEqual(served(1));
    await untilGroup(stage, { in_use: 0 });
    expect(pausedMs(await statusOf(stage)) > 0).toBe(isBelieved);
    const next = send(stage, 'two', { headers: { 'headgate-max-wait': '0' } });
    expect((await next.response).status).toBe(isBelieved ? 429 : 200);
  });
});

describe('what is nearly empty', () => {
  const tenPerTenMinutes = { rpm: 10, windowMs: 600_000, algorithm: 'bucket' };

  it.each([
    ['by default is less than a twentieth', {}, 0, 0],
    ['is fewer than keep_requests', { keep_requests: 3, keep_share: 0.5 }, 0, 0],
    ['is less than keep_share too', { keep_requests: 100, keep_share: 0.5 }, 1, 60_000],
    [
      'makes nobody wait for longer than wait_max_ms',
      { keep_requests: 5, keep_share: 0.5, wait_max_ms: 20_000 },
      1,
      20_000,
    ],
    ['is nothing where keep_requests is 0', { keep_requests: 0, keep_share: 0.5 }, 0, 0],
  ])('%s', async (_, feedForward, waitMsMin, waitMsMax) => {
    const stage = await reporting(tenPerTenMinutes, {
      group: { feed_forward: feedForward },
      upstream: openai,
    });
    // Four of ten are left after the sixth.
    for (let at = 1; at <= 6; at += 1) {
      expect(await reportedBy(send(stage, `c${at}`))).toEqual(served(1));
    }
    await untilGroup(stage, { in_use: 0 });
    const ms = pausedMs(await statusOf(stage));
    expect(ms).toBeGreaterThanOrEqual(waitMsMin);
    expect(ms).toBeLessThanOrEqual(waitMsMax);
  });
});

describe('a bucket', () => {
  /** Two requests in ten minutes: another one every 300 s. */
  const slow = { rpm: 2, tpm: 1_000_000, windowMs: 600_000, algorithm: 'bucket' } as const;

  it.each([
    ['refill of a request, where it is set', 'bucket', 200_000, 301_000],
    ['refill of a request, where its provider has buckets', 'auto', 200_000, 301_000],
    ['reset, where it is said to be a window', 'window', 500_000, 601_000],
  ] as const)(
    'that refuses a call without a time is waited for until the %s',
    async (_, limit_headers, msMin, msMax) => {
      const id = 'anthropic';
      const settings = { hidesWaits: true, refuseAs: id } as const;
      const group = { feed_forward: { keep_requests: 0 } };
      const stage = await reporting(slow, { settings, upstream: { id, limit_headers }, group });
      const path = `/${id}/v1/messages`;
      for (const label of ['one', 'two']) {
        expect(await reportedBy(send(stage, label, { path }))).toEqual(served(1));
      }
      const headers = { 'headgate-max-wait': '0' };
      expect(await reportedBy(send(stage, 'three', { path, headers }))).toMatchObject({
        status: 429,
      });
      await untilGroup(stage, { in_use: 0 });
      const ms = pausedMs(await statusOf(stage));
      expect(ms).toBeGreaterThan(msMin);
      expect(ms).toBeLessThanOrEqual(msMax);
    },
  );
});

it('learns the limits of each key and member of one pool separately', () => {
  const placeOf = (keyFingerprint: string | null, member: string | null): string => {
    const candidate = {
      located: { upstream: { id: 'sim' }, model: 'm' },
      routed: { keyFingerprint },
      member: member === null ? null : { id: member },
      rules: { feedForward: {} },
    };
    const admission = { placements: [{ group: 'shared', partition: null }] };
    return limitsOf({ candidate, admission } as unknown as Sending).place;
  };
  const calls = [
    ['one', null],
    ['two', null],
    [null, null],
    [null, 'a'],
    [null, 'b'],
  ] as const;
  const places = calls.map(([key, member]) => placeOf(key, member));
  expect(new Set(places).size).toBe(calls.length);
});
