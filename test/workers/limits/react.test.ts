// What each refusal of the upstream does to its group, and what it does not.
import { afterAll, describe, expect, it, vi } from 'vitest';
import { LeaseHandle } from '../../../src/group/lease-handle.ts';
import { NO_COOLDOWN, nothingLeaks } from '../support/pool.ts';
import { until } from '../support/worker.ts';
import {
  arrived,
  finish,
  later,
  newStage,
  pausedMs,
  send,
  served,
  statusOf,
  streaming,
  reportedBy,
  untilGroup,
} from './stage.ts';

afterAll(nothingLeaks);

const AT_ONCE = { 'headgate-max-wait': '0' };

/** Refuses the next call for its rate, and tells to wait so long. */
function waitOf(ms: number): Record<string, string> {
  return { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': String(ms) };
}

describe('what waiting cannot mend', () => {
  it.each([
    ['egress', 403],
    ['quota', 429],
    ['never_fits', 429],
  ])(
    'passes through at once, says not to retry, and stops nobody else: %s',
    async (kind, status) => {
      const stage = await newStage({ group: { retries: { max: 2 } } });
      await stage.strict.failNext(kind);
      const one = send(stage, 'one');
      expect(await reportedBy(one)).toEqual({
        status,
        tries: '1',
        reason: null,
        shouldRetry: 'false',
      });
      expect(await reportedBy(send(stage, 'two'))).toEqual(served(1));
      expect(await arrived(stage)).toEqual(['one', 'two']);
      expect(await statusOf(stage)).toMatchObject({
        refusals_total: { [kind]: 1 },
        paused_until: null,
        limit: { effective: 8, source: 'configured' },
      });
    },
  );

  it('a limit of hours blocks its group until the time given, and the status shows when that is', async () => {
    const stage = await newStage();
    await stage.strict.failNext('long_window');
    expect(await reportedBy(send(stage, 'one'))).toEqual({
      status: 429,
      tries: '1',
      reason: null,
      shouldRetry: 'false',
    });
    await untilGroup(stage, { in_use: 0 });
    const status = await statusOf(stage);
    expect(status).toMatchObject({ paused: false, refusals_total: { long_window: 1 } });
    expect(pausedMs(status)).toBeGreaterThan(3_500_000);
    expect(pausedMs(status)).toBeLessThanOrEqual(3_600_000);
    const next = send(stage, 'next');
    // SDKs would come back within a minute, again and again for an hour. What can wait for long learns until when.
    expect(await reportedBy(next)).toMatchObject({
      status: 429,
      reason: 'upstream_limited',
      shouldRetry: 'false',
    });
    const retryAfter = (await next.response).headers.get('retry-after');
    expect(Number(retryAfter)).toBeGreaterThan(3_500);
    expect(await arrived(stage)).toEqual(['one']);
    await later(stage, 3_600_000);
    expect(await reportedBy(send(stage, 'after'))).toEqual(served(1));
    expect((await statusOf(stage)).paused_until).toBeNull();
  });

  it('a limit of hours whose end nobody knows blocks nobody', async () => {
    const stage = await newStage({ upstream: { dialect: 'gemini' } });
    await stage.strict.failNext('long_window');
    const path = `/${stage.upstream}/v1beta/models/m:generateContent`;
    expect(await reportedBy(send(stage, 'one', { path }))).toMatchObject({
      status: 429,
      shouldRetry: 'false',
    });
    expect(await statusOf(stage)).toMatchObject({
      paused_until: null,
      refusals_total: { long_window: 1 },
    });
    expect(await reportedBy(send(stage, 'two', { path }))).toEqual(served(1));
  });
});

describe('a limit per minute', () => {
  it.each(['requests', 'tokens'])(
    'stops the whole group for as long as the upstream says, and what is in flight goes on: %s',
    async (kind) => {
      const stage = await newStage();
      const before = [await streaming(stage, 'a'), await streaming(stage, 'b')];
      const headers = { ...waitOf(20_000), 'x-strict-fail': kind, ...AT_ONCE };
      expect(await reportedBy(send(stage, 'refused', { headers }))).toMatchObject({ status: 429 });
      await untilGroup(stage, { in_use: 2, refusals_total: { [kind]: 1 } });
      expect(pausedMs(await statusOf(stage))).toBeGreaterThan(15_000);
      const waits = [send(stage, 'c'), send(stage, 'd')];
      await untilGroup(stage, { in_use: 2, queued: 2 });
      await finish(stage, ...before);
      await untilGroup(stage, { in_use: 0, queued: 2 });
      // A slot that came back is granted to nobody before the end.
      expect(await arrived(stage)).toEqual(['a', 'b', 'refused']);
      await later(stage, 20_000);
      for (const one of waits) expect(await reportedBy(one)).toEqual(served(1));
    },
  );

  it('gives the slots back a few at a time when the pause is over', async () => {
    const stage = await newStage();
    const headers = { ...waitOf(20_000), ...AT_ONCE };
    await reportedBy(send(stage, 'refused', { headers }));
    const silent = { 'x-strict-silent-after-chunks': '1' };
    const callersAtOnce = Array.from({ length: 10 }, (_, at) =>
      send(stage, `c${at}`, { stream: true, headers: silent }),
    );
    await untilGroup(stage, { queued: 10 });
    // A quarter of the slots at the end of the pause, and twice as many every two seconds.
    const inUse: number[] = [];
    for (const ms of [20_000, 2_000, 2_000]) {
      await later(stage, ms);
      inUse.push((await statusOf(stage)).in_use);
    }
    expect(inUse).toEqual([2, 4, 8]);
    await finish(stage, ...callersAtOnce);
  });

  it('leaves nothing of the bucket that it is about', async () => {
    const stage = await newStage({ group: { limits: { rpm: 600, tpm: 600_000, burst: 1 } } });
    const headers = { ...waitOf(1_000), ...AT_ONCE };
    await reportedBy(send(stage, 'refused', { headers }));
    await untilGroup(stage, { in_use: 0 });
    const { rates } = await statusOf(stage);
    expect(rates?.['rpm']?.left).toBeLessThan(100);
    expect(rates?.['tpm']?.left).toBeGreaterThan(500_000);
  });
});

describe('an overload', () => {
  it('cuts the slots once for all calls of one jam', async () => {
    const stage = await newStage({ group: { limits: { max_concurrency: 10 } } });
    const headers = { 'x-strict-status': '529', 'x-strict-first-byte-delay-ms': '800' };
    const jam = Array.from({ length: 5 }, (_, at) => send(stage, `j${at}`, { headers }));
    for (const one of jam) expect(await reportedBy(one)).toMatchObject({ status: 529 });
    // All of them were granted before the first was refused.
    expect((await stage.strict.stats()).peak).toBe(5);
    await untilGroup(stage, { in_use: 0, refusals_total: { overload: 5 } });
    expect((await statusOf(stage)).limit).toEqual({
      configured: 10,
      effective: 7,
      source: 'learned',
    });
    await reportedBy(send(stage, 'later', { headers: { 'x-strict-status': '529' } }));
    await untilGroup(stage, { refusals_total: { overload: 6 } });
    expect((await statusOf(stage)).limit).toMatchObject({ effective: 4 });
  });

  it.each(['overload', 'concurrency'])('cuts nothing where adaptive is off: %s', async (kind) => {
    const stage = await newStage({ group: { adaptive: 'off' } });
    await stage.strict.failNext(kind);
    await reportedBy(send(stage, 'one', { headers: AT_ONCE }));
    await untilGroup(stage, { in_use: 0, refusals_total: { [kind]: 1 } });
    expect((await statusOf(stage)).limit).toMatchObject({ effective: 8, source: 'configured' });
  });
});

describe('a caller that leaves', () => {
  const holds = { ...NO_COOLDOWN, failure_hold_ms: 20_000 };

  it('while its refusal is told to the group dodges nothing', async () => {
    const stage = await newStage({ group: { holds } });
    // oxlint-disable-next-line typescript/unbound-method -- called with its object below
    const { report } = LeaseHandle.prototype;
    let isReported = false;
    const spy = vi.spyOn(LeaseHandle.prototype, 'report');
    spy.mockImplementationOnce(async function slow(this: LeaseHandle, signal, isRepeat) {
      isReported = true;
      await scheduler.wait(300);
      return report.call(this, signal, isRepeat);
    });
    const one = send(stage, 'one', { headers: waitOf(20_000) });
    await until(() => expect(isReported).toBe(true));
    one.leave();
    await untilGroup(stage, { in_use: 0, cooling: 1, refusals_total: { requests: 1 } });
    expect(pausedMs(await statusOf(stage))).toBeGreaterThan(10_000);
    spy.mockRestore();
    await later(stage, 20_000);
  });

  it('while its refusal is still being read dodges nothing', async () => {
    const stage = await newStage({ group: { holds } });
    const real = fetch;
    let isRead = false;
    vi.stubGlobal('fetch', (input: string, init?: RequestInit) => {
      if (!input.endsWith('/chat/completions')) return real(input, init);
      const body = new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode('{"error":{"type":"requests","message":"'));
          init?.signal?.addEventListener('abort', () => controller.error(new Error('aborted')));
          isRead = true;
        },
      });
      const headers = { 'retry-after': '20', 'content-type': 'application/json' };
      return Promise.resolve(new Response(body, { status: 429, headers }));
    });
    const one = send(stage, 'one');
    await until(() => expect(isRead).toBe(true));
    one.leave();
    await untilGroup(stage, { in_use: 0, cooling: 1, refusals_total: { requests: 1 } });
    vi.unstubAllGlobals();
    expect(pausedMs(await statusOf(stage))).toBeGreaterThan(10_000);
    await later(stage, 20_000);
  });

  it.each([
    ['as soon as it has the refusal', AT_ONCE],
    ['while it waits for its next turn', {}],
  ])('%s dodges nothing', async (_, wait) => {
    const stage = await newStage({ group: { holds } });
    const one = send(stage, 'one', { headers: { ...waitOf(20_000), ...wait } });
    await (wait === AT_ONCE ? one.response : untilGroup(stage, { queued: 1, cooling: 1 }));
    one.leave();
    await untilGroup(stage, { in_use: 0, cooling: 1, refusals_total: { requests: 1 } });
    expect(pausedMs(await statusOf(stage))).toBeGreaterThan(10_000);
    await later(stage, 20_000);
  });
});
