// Calls that Headgate ends: the upstream is aborted first, and only then does the slot go to the next.
import { afterAll, beforeEach, expect, it } from 'vitest';
import { NO_COOLDOWN, nothingLeaks, pool, untilStatus } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, chat, configure, open, until } from '../support/worker.ts';

const CHAT = '/up/v1/chat/completions';

let strict: Strict;
let group = '';
let groups = 0;

beforeEach(async () => {
  groups += 1;
  group = `holds-${groups}`;
  strict = await strictScope('holds', { limit: 1 });
});

afterAll(nothingLeaks);

/**
 * The upstream is another process, and notices a closed connection up to a millisecond or two after it was closed. A
 * slot is handed on as fast, so it stays down that long: what comes after is told apart from what comes before.
 */
const NOTICED = { cancel_cooldown_ms: 50, failure_hold_ms: 50 };

async function limitTo(
  holds: { idle_ms?: number; stalled_ms?: number; max_hold_ms?: number },
  limits: { tpm?: number } = {},
  dialect: 'openai' | 'gemini' = 'openai',
): Promise<void> {
  await configure({
    upstreams: [{ id: 'up', base_url: strict.url, dialect }],
    groups: [
      {
        name: group,
        match: { upstreams: ['up'] },
        limits: { max_concurrency: 1, ...limits },
        holds: { ...NO_COOLDOWN, ...NOTICED, ...holds },
      },
    ],
  });
}

const SILENT = { 'x-strict-silent-after-chunks': '1' };

/** A call that streams until it is ended, and one that waits for its slot. */
async function streamAndWait(behaviour: Record<string, string> = SILENT) {
  const first = open(CHAT, 'first', { headers: behaviour });
  const { headers } = await first.response;
  return { first, second: open(CHAT, 'second'), leaseId: headers.get('headgate-lease') ?? '' };
}

async function expectAbortBeforeNext(): Promise<void> {
  const { arrivals, peak, rejected429 } = await strict.stats();
  expect(arrivals).toMatchObject([
    { label: 'first', state: 'aborted' },
    { label: 'second', state: 'done' },
  ]);
  expect(arrivals[0]?.endedAt).toBeLessThanOrEqual(arrivals[1]?.at ?? 0);
  expect({ peak, rejected429 }).toEqual({ peak: 1, rejected429: 0 });
  await untilStatus(group, { in_use: 0, queued: 0 });
}

it('a stream that is silent for longer than idle_ms is aborted, then its slot returns', async () => {
  await limitTo({ idle_ms: 300 });
  const { first, second } = await streamAndWait();
  expect(await first.end).toBe('cut');
  expect(await second.end).toBe('done');
  await expectAbortBeforeNext();
});

it('a stream that says something now and then is not idle', async () => {
  await limitTo({ idle_ms: 4_000 });
  await strict.configure({ chunks: 8, chunkDelayMs: 600 });
  const answer = await chat(CHAT, 'slow');
  expect(await answer.text()).toContain('[DONE]');
});

const FLOWING = { 'x-strict-chunks': '100000', 'x-strict-chunk-delay-ms': '5' };

it.each([
  ['', {}],
  [', where its tokens are counted', { tpm: 10_000_000 }],
])(
  'a caller that takes nothing for longer than stalled_ms is cut, then its slot returns%s',
  async (_, limits) => {
    await limitTo({ stalled_ms: 300 }, limits);
    const stalled = await chat(CHAT, 'first', { headers: FLOWING });
    const second = open(CHAT, 'second');
    expect(await second.end).toBe('done');
    await expect(stalled.text()).rejects.toBeInstanceOf(Error);
    await expectAbortBeforeNext();
  },
);

it('an upstream that says nothing for longer than stalled_ms stalls nobody', async () => {
  await limitTo({ stalled_ms: 200 });
  await strict.configure({ chunks: 3, chunkDelayMs: 700 });
  const answer = await chat(CHAT, 'slow');
  expect(await answer.text()).toContain('[DONE]');
});

it('a caller that takes its time, but takes, is not stalled', async () => {
  await limitTo({ stalled_ms: 4_000 });
  await strict.configure({ chunks: 12 });
  const answer = await chat(CHAT, 'slow');
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const read = await reader?.read();
    if (read === undefined || read.done) break;
    text += read.value;
    await new Promise((resolve) => {
      setTimeout(resolve, 400);
    });
  }
  expect(text).toContain('[DONE]');
});

it('an upstream that gives no headers within idle_ms is aborted, and the caller is told', async () => {
  await limitTo({ idle_ms: 100 });
  await strict.configure({ firstByteDelayMs: 60_000 });
  const answer = await chat(CHAT, 'mute');
  expect(answer.status).toBe(502);
  expect(answer.headers.get('headgate-reason')).toBe('upstream_unreachable');
  expect(await answer.text()).toContain('it sent nothing in time');
  await until(async () => expect(await strict.stats()).toMatchObject({ inFlight: 0, aborted: 1 }));
  await untilStatus(group, { in_use: 0 });
});

it('a caller that stops sending its request is cut after stalled_ms, and its slot is released', async () => {
  await limitTo({ idle_ms: 200, stalled_ms: 300 });
  const { readable, writable } = new IdentityTransformStream();
  const answer = call(CHAT, { method: 'POST', body: readable });
  const written = writable.getWriter().write(new TextEncoder().encode('{"model":"gpt-4o-mini",'));
  const second = open(CHAT, 'second');
  const { status, headers } = await answer;
  expect([status, headers.get('headgate-reason')]).toEqual([408, 'request_timeout']);
  expect(await second.end).toBe('done');
  await until(async () => expect(await strict.stats()).toMatchObject({ inFlight: 0, aborted: 1 }));
  await untilStatus(group, { in_use: 0 });
  await written.catch(() => {});
});

it.each<[string, Record<string, string>]>([
  ['a silent stream', SILENT],
  ['an endless stream', { 'x-strict-chunks': '100000', 'x-strict-chunk-delay-ms': '5' }],
])('%s that holds its slot for longer than max_hold_ms is aborted first', async (_, behaviour) => {
  await limitTo({ max_hold_ms: 400 });
  const { first, second } = await streamAndWait(behaviour);
  expect(await first.end).toBe('cut');
  expect(await second.end).toBe('done');
  await expectAbortBeforeNext();
});

it('a lease that is force-released ends its upstream call before the slot goes to the next', async () => {
  await limitTo({});
  const { first, second, leaseId } = await streamAndWait();
  await untilStatus(group, { in_use: 1, queued: 1 });
  const { json: listed } = await admin('GET', `/groups/${group}/leases`);
  expect(listed.leases).toMatchObject([{ id: leaseId, state: 'held' }]);
  const { status, json } = await admin('DELETE', `/groups/${group}/leases/${leaseId}`);
  expect({ status, state: json.state }).toEqual({ status: 202, state: 'revoking' });
  expect(await pool(group).status()).toMatchObject({ in_use: 1, queued: 1 });
  expect(await first.end).toBe('cut');
  expect(await second.end).toBe('done');
  await expectAbortBeforeNext();
});

it('a holder with a parked renewal learns that its lease was taken away', async () => {
  await limitTo({});
  const { first, second, leaseId } = await streamAndWait();
  await untilStatus(group, { in_use: 1, queued: 1 });
  const grantedTtl = (await pool(group).leases())[0]?.expires_at;
  await until(async () => expect((await pool(group).leases())[0]?.expires_at).not.toBe(grantedTtl));
  await pool(group).revoke(leaseId);
  expect(await first.end).toBe('cut');
  expect(await second.end).toBe('done');
  await expectAbortBeforeNext();
});

it('a 429 of the upstream holds its slot down for a while, and never the caller', async () => {
  await configure({
    upstreams: [{ id: 'up', base_url: strict.url }],
    groups: [
      {
        name: group,
        match: { upstreams: ['up'] },
        limits: { max_concurrency: 1 },
        holds: { failure_hold_ms: 600 },
      },
    ],
  });
  await strict.configure({ status: 429 });
  const refused = await chat(CHAT, 'refused');
  expect(refused.status).toBe(429);
  await refused.text();
  await untilStatus(group, { in_use: 0, cooling: 1 });
  await strict.configure({ status: null });
  const next = await chat(CHAT, 'next');
  expect(Number(next.headers.get('headgate-wait-ms'))).toBeGreaterThan(300);
  await next.text();
  const [first, second] = (await strict.stats()).arrivals;
  expect((second?.at ?? 0) - (first?.endedAt ?? 0)).toBeGreaterThan(550);
});

const SIZED = { 'x-strict-content-length': '1' };

/** A call whose answer is a JSON array that comes in pieces. */
const ARRAY = '/up/v1beta/models/m:streamGenerateContent';

const asArray = (label: string) => ({ contents: [{ role: 'user', parts: [{ text: label }] }] });

it.each<[string, Record<string, string>, string, string]>([
  [
    'breaks off',
    { 'x-strict-break-after-chunks': '2', 'x-strict-chunk-delay-ms': '100' },
    'broken',
    'the connection failed',
  ],
  [
    'stalls',
    { 'x-strict-silent-after-chunks': '2' },
    'aborted',
    'the call took longer than its group allows',
  ],
])(
  'a small answer of known length that %s half-way is a 502, and its slot goes to the next',
  async (_, behaviour, state, why) => {
    await limitTo({ max_hold_ms: 4_000 }, {}, 'gemini');
    const headers = { ...SIZED, ...behaviour };
    const first = call(ARRAY, { json: asArray('first'), headers });
    await untilStatus(group, { in_use: 1 });
    const second = open(ARRAY, 'second', { json: asArray('second') });
    const answer = await first;
    expect(answer.status).toBe(502);
    expect(answer.headers.get('headgate-reason')).toBe('upstream_unreachable');
    expect(await answer.text()).toContain(why);
    expect(await second.end).toBe('done');
    const { arrivals, peak, rejected429 } = await strict.stats();
    expect(arrivals.map((one) => [one.label, one.state])).toEqual([
      ['first', state],
      ['second', 'done'],
    ]);
    expect({ peak, rejected429 }).toEqual({ peak: 1, rejected429: 0 });
    await untilStatus(group, { in_use: 0, queued: 0 });
  },
);

it('a caller that leaves while a small answer of known length stalls frees its slot', async () => {
  await limitTo({}, {}, 'gemini');
  const headers = { ...SIZED, ...SILENT };
  const first = open(ARRAY, 'first', { json: asArray('first'), headers });
  await until(async () => expect((await strict.stats()).inFlight).toBe(1));
  const second = open(ARRAY, 'second', { json: asArray('second') });
  await untilStatus(group, { in_use: 1, queued: 1 });
  first.leave();
  expect(await first.end).toBe('cut');
  expect(await second.end).toBe('done');
  await expectAbortBeforeNext();
});
