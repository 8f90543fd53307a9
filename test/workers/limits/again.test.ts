// Refusals of the upstream that waiting mends: the call goes back into the queue, and its caller sees none.
import { afterAll, describe, expect, it } from 'vitest';
import { NO_COOLDOWN, nothingLeaks } from '../support/pool.ts';
import { call } from '../support/worker.ts';
import {
  arrived,
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
} from './stage.ts';

afterAll(nothingLeaks);

/** The upstream takes one call at a time, which the group does not know, and has it. */
async function narrowUpstream(): Promise<{
  stage: LimitsStage;
  holder: Awaited<ReturnType<typeof streaming>>;
}> {
  const stage = await newStage({ settings: { limit: 1 } });
  return { stage, holder: await streaming(stage, 'holder') };
}

describe('a call that was refused', () => {
  it.each(['concurrency', 'requests', 'tokens', 'ramp'])(
    'for %s waits and is served, and its caller is told of two tries',
    async (kind) => {
      const stage = await newStage();
      await stage.strict.failNext(kind);
      const one = send(stage, 'one');
      await untilGroup(stage, { refusals_total: { [kind]: 1 } });
      await later(stage, 1_000);
      expect(await reportedBy(one)).toEqual(served(2));
      expect(await arrived(stage)).toEqual(['one', 'one']);
      await untilGroup(stage, { in_use: 0, granted_total: 2 });
    },
  );

  it('with a 429 that says no more waits and is served', async () => {
    const stage = await newStage({ settings: { status: 429 } });
    const one = send(stage, 'one', { path: `/${stage.upstream}/v1/messages` });
    await untilGroup(stage, { refusals_total: { unknown: 1 } });
    await stage.strict.configure({ status: null });
    await later(stage, 1_000);
    expect(await reportedBy(one)).toEqual(served(2));
  });

  it('waits for the slot of another where the upstream takes fewer than the group thought', async () => {
    const { stage, holder } = await narrowUpstream();
    const one = send(stage, 'one');
    await untilGroup(stage, { in_use: 1, queued: 1, refusals_total: { concurrency: 1 } });
    expect(await statusOf(stage)).toMatchObject({
      limit: { configured: 8, effective: 1, source: 'learned' },
    });
    await finish(stage, holder);
    expect(await reportedBy(one)).toEqual(served(2));
    expect(await arrived(stage)).toEqual(['holder', 'one', 'one']);
  });

  it('goes before those who came after it', async () => {
    const holds = { ...NO_COOLDOWN, failure_hold_ms: 300 };
    const stage = await newStage({ group: { limits: { max_concurrency: 1 }, holds } });
    const holder = await streaming(stage, 'holder');
    const old = send(stage, 'old');
    await untilGroup(stage, { queued: 1 });
    const young = send(stage, 'young');
    await untilGroup(stage, { queued: 2 });
    await stage.strict.failNext('concurrency');
    await finish(stage, holder);
    expect(await reportedBy(old)).toEqual(served(2));
    expect(await reportedBy(young)).toEqual(served(1));
    expect(await arrived(stage)).toEqual(['holder', 'old', 'old', 'young']);
  });

  it('goes out again as it was, to the last byte', async () => {
    const stage = await newStage({ settings: { echo: true } });
    await stage.strict.failNext('concurrency');
    // Longer than what is kept without asking the budget.
    const body = JSON.stringify({ model: 'm', messages: [], pad: 'é'.repeat(200_000) });
    const bytes = new TextEncoder().encode(body);
    const headers = { 'content-type': 'application/json', 'x-kept': 'yes' };
    const response = await call(`${stage.chat}?a=b`, { method: 'POST', body: bytes, headers });
    expect(response.headers.get('headgate-tries')).toBe('2');
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
    expect(await response.json()).toMatchObject({
      query: 'a=b',
      headers: { 'x-kept': 'yes', 'content-length': String(bytes.length) },
      bodyBytes: bytes.length,
      sha256: digest.toHex(),
    });
  });

  it('and leaves while it waits is not sent again', async () => {
    const { stage, holder } = await narrowUpstream();
    const one = send(stage, 'one');
    await untilGroup(stage, { queued: 1, refusals_total: { concurrency: 1 } });
    one.leave();
    await untilGroup(stage, { queued: 0, in_use: 1 });
    await finish(stage, holder);
    await untilGroup(stage, { in_use: 0 });
    expect(await arrived(stage)).toEqual(['holder', 'one']);
  });

  it('whatever happens is sent seven times, and then its caller has the refusal', async () => {
    const stage = await newStage();
    const one = send(stage, '[[strict fail=concurrency]]');
    expect(await reportedBy(one)).toEqual({ ...served(7), status: 429 });
    expect((await stage.strict.stats()).total).toBe(7);
  });

  it('gives its slot and its tokens back, and counts as a request, as providers count it', async () => {
    const stage = await newStage({ group: { limits: { rpd: 1_000, tpd: 1_000_000 } } });
    const label = `${'word '.repeat(1_000)}[[strict fail=concurrency]]`;
    const refused = send(stage, label, { headers: { 'headgate-max-wait': '0' } });
    expect(await reportedBy(refused)).toMatchObject({ status: 429, tries: '1' });
    await untilGroup(stage, { in_use: 0, cooling: 0 });
    const { rates } = await statusOf(stage);
    expect(rates).toMatchObject({ tpd: { left: 1_000_000 }, rpd: { left: 999 } });
    expect(await reportedBy(send(stage, 'word '.repeat(1_000)))).toEqual(served(1));
    await untilGroup(stage, { in_use: 0 });
    expect((await statusOf(stage)).rates?.['tpd']?.left).toBeLessThan(999_000);
  });
});

describe('at its deadline a call that was refused', () => {
  const LONG = { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': '600000' };

  it.each([
    [
      'openai',
      'v1/chat/completions',
      { error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' } },
    ],
    ['anthropic', 'v1/messages', { type: 'error', error: { type: 'rate_limit_error' } }],
    [
      'gemini',
      'v1beta/models/m:generateContent',
      { error: { code: 429, status: 'RESOURCE_EXHAUSTED' } },
    ],
  ] as const)(
    'is told so in the dialect of %s, at once if it waits in vain',
    async (dialect, path, body) => {
      const stage = await newStage({ upstream: { dialect } });
      // If it waited it would do so for longer than this test may take.
      const headers = { ...LONG, 'headgate-max-wait': '300s' };
      const response = await call(`/${stage.upstream}/${path}`, { json: { model: 'm' }, headers });
      expect(response.status).toBe(429);
      expect(response.headers.get('headgate-reason')).toBe('upstream_limited');
      expect(response.headers.get('headgate-tries')).toBe('1');
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(40);
      expect(await response.json()).toMatchObject(body);
      await untilArrived(stage, 1);
      await untilGroup(stage, { in_use: 0, queued: 0 });
    },
  );

  it('is told how long it waited for a slot', async () => {
    const { stage, holder } = await narrowUpstream();
    const one = await call(stage.chat, {
      json: { model: 'm', messages: [] },
      headers: { 'headgate-max-wait': '500ms' },
    });
    expect(one.status).toBe(429);
    expect(one.headers.get('headgate-reason')).toBe('queue_timeout');
    expect(await one.text()).toMatch(/No slot of group `.*` became free within \d+ ms/);
    await finish(stage, holder);
    await untilArrived(stage, 2);
  });
});

describe("the upstream's own refusal passes through", () => {
  const json = { model: 'm', messages: [{ role: 'user', content: 'x' }], max_tokens: 9 };

  it.each(['concurrency', 'requests', 'tokens', 'ramp'])(
    'byte for byte where the caller does not want to wait: %s',
    async (kind) => {
      const stage = await newStage();
      const headers = { 'content-type': 'application/json', 'x-strict-fail': kind };
      const straight = await fetch(`${stage.strict.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(json),
        headers,
      });
      const wait = { 'headgate-max-wait': '0' };
      const through = await call(stage.chat, { json, headers: { ...headers, ...wait } });
      expect(through.status).toBe(straight.status);
      for (const name of ['content-type', 'retry-after', 'x-should-retry']) {
        expect(through.headers.get(name)).toBe(straight.headers.get(name));
      }
      expect(through.headers.get('headgate-tries')).toBe('1');
      expect(through.headers.get('headgate-reason')).toBeNull();
      expect(await through.text()).toBe(await straight.text());
      await untilArrived(stage, 2);
    },
  );

  it.each([
    ['longer than max_body_bytes', {}],
    ['longer than max_body_bytes, though it was read to count its tokens', { tpm: 1_000_000 }],
  ])('where the body is %s', async (_, limits) => {
    const group = { limits, retries: { max: 2, max_body_bytes: 500 } };
    const stage = await newStage({ group });
    await stage.strict.failNext('concurrency');
    const long = send(stage, 'long'.repeat(200));
    expect(await reportedBy(long)).toMatchObject({ status: 429, tries: '1' });
    await stage.strict.failNext('concurrency');
    expect(await reportedBy(send(stage, 'short'))).toEqual(served(2));
    await untilArrived(stage, 3);
  });

  it('where the length of the body was not known', async () => {
    const stage = await newStage();
    await stage.strict.failNext('concurrency');
    const bytes = new TextEncoder().encode(JSON.stringify(json));
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(bytes);
        controller.close();
      },
    });
    const response = await call(stage.chat, { method: 'POST', body });
    expect(response.status).toBe(429);
    expect(response.headers.get('headgate-tries')).toBe('1');
    await untilArrived(stage, 1);
  });
});
