// What a call takes of rates and budgets before it is sent, and what it gives back: everything if the
// upstream never got it, and once, by the provider's rule, when it has ended.
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import {
  nothingLeaks,
  NO_COOLDOWN,
  passAwake,
  pool,
  resetPool,
  untilStatus,
} from '../support/pool.ts';
import { strictScope, type Settings } from '../support/strict.ts';
import { admin, call, change, configure, until, type WorkerOpenCall } from '../support/worker.ts';
import {
  CHAT,
  chatBody,
  counted,
  COUNTING,
  dialects,
  newScene,
  NOTHING,
  post,
  PRICE,
  untilCounted,
  usedOf,
  type MeteringSceneCounted,
  type Scene,
} from './scene.ts';

afterAll(nothingLeaks);

/** Streams go silent after a chunk until they are resumed. */
const SILENT: Settings = { chunks: 3, silentAfterChunks: 1 };
const USAGE: Settings = { inputTokens: 70, cachedTokens: 20, outputTokens: 11 };

/** A stream that tells its usage, bounded in its output. */
const STREAM = { stream: true, max_tokens: 300, stream_options: { include_usage: true } };
const BODY = chatBody('a question of some length', STREAM);
/** Four bytes are a token. Of the output its bound is reserved, as nothing is known of the model. */
const RESERVED: MeteringSceneCounted = {
  requests: 1,
  inputTokens: Math.ceil(BODY.length / 4),
  outputTokens: 300,
  usd: 0,
  reservedUsd: (Math.ceil(BODY.length / 4) * PRICE.input + 300 * PRICE.output) / 1e6,
};
/** As the upstream reports: 50 tokens at 2 USD per million, 20 at 0.5 and 11 at 10. */
const USED: MeteringSceneCounted = {
  requests: 1,
  inputTokens: 70,
  outputTokens: 11,
  usd: 0.00022,
  reservedUsd: 0,
};

/** The part of a limit per minute that is written ahead: what it allows in a second. */
function block(name: 'rpm' | 'itpm' | 'otpm'): number {
  return (COUNTING?.[name] ?? 0) / 60;
}

function open(path: string, body: string, headers: Record<string, string> = {}): WorkerOpenCall {
  const client = new AbortController();
  const response = post(path, body, { headers, signal: client.signal });
  const end = response
    .then((answer) => answer.arrayBuffer())
    .then(
      () => 'done' as const,
      () => 'cut' as const,
    );
  return { label: '', response, end, leave: () => client.abort() };
}

/** A call that streams, and has not ended. */
async function streaming({ strict }: Scene, body = BODY): Promise<WorkerOpenCall> {
  const { inFlight } = await strict.stats();
  const one = open(`/up${CHAT}`, body);
  await until(async () => expect((await strict.stats()).inFlight).toBe(inFlight + 1));
  return one;
}

describe('a call', () => {
  it('takes its estimate when it is granted, and counts as what it used when it has ended', async () => {
    const scene = await newScene({ ...SILENT, ...USAGE }, { ...COUNTING, tpm: 1_000_000 });
    const one = await streaming(scene);
    expect(await counted(scene.group)).toEqual(RESERVED);
    expect(await usedOf(scene.group, 'tpm')).toBe(RESERVED.inputTokens + RESERVED.outputTokens);
    await scene.strict.resume();
    expect(await one.end).toBe('done');
    await untilCounted(scene.group, USED);
    expect(await usedOf(scene.group, 'tpm')).toBe(70 + 11);
  });

  it('is settled once, whoever ends it how often', async () => {
    const scene = await newScene(USAGE);
    const response = await post(`/up${CHAT}`, BODY);
    const leaseId = response.headers.get('headgate-lease') ?? '';
    await response.text();
    await untilCounted(scene.group, USED);
    const twice = { requests: 1, inputTokens: 900, outputTokens: 900, usd: 9, seen: null };
    await pool(scene.group).release(leaseId, 'success', 200, twice);
    await pool(scene.group).release(leaseId, 'unused', 200);
    expect(await counted(scene.group)).toEqual(USED);
  });

  it('is settled after a reset of the object in between, which loses what was written ahead', async () => {
    const scene = await newScene({ ...SILENT, ...USAGE });
    const one = await streaming(scene);
    await resetPool(scene.group);
    expect(await counted(scene.group)).toEqual(RESERVED);
    await scene.strict.resume();
    expect(await one.end).toBe('done');
    await untilCounted(scene.group, {
      requests: USED.requests + block('rpm'),
      inputTokens: USED.inputTokens + block('itpm'),
      outputTokens: USED.outputTokens + block('otpm'),
      usd: USED.usd,
      reservedUsd: 0,
    });
    await passAwake(scene.group, LEASE_TTL_MS);
  });

  it('teaches how far estimates of its model are off', async () => {
    const scene = await newScene({
      ...SILENT,
      inputTokens: 1.5 * RESERVED.inputTokens,
      outputTokens: 40,
    });
    const first = await streaming(scene);
    await scene.strict.resume();
    expect(await first.end).toBe('done');
    await untilCounted(scene.group, { outputTokens: 40 });
    const before = await counted(scene.group);
    const second = await streaming(scene);
    const during = await counted(scene.group);
    expect(during.inputTokens - before.inputTokens).toBe(1.5 * RESERVED.inputTokens);
    // What calls of the model write on the average, not what this one allows.
    expect(during.outputTokens - before.outputTokens).toBe(40);
    second.leave();
    expect(await second.end).toBe('cut');
  });
});

describe('a call takes nothing that never goes out:', () => {
  let scene: Scene;
  let holder: WorkerOpenCall;

  beforeEach(async () => {
    scene = await newScene(SILENT, { ...COUNTING, max_concurrency: 1 });
    holder = await streaming(scene);
    return async () => {
      holder.leave();
      await holder.end;
    };
  });

  /** Reads what was counted, and what the upstream has heard: nothing but of the call that holds the slot. */
  async function seen(): Promise<unknown> {
    return [await counted(scene.group), (await scene.strict.stats()).total];
  }
  const ONE = [RESERVED, 1];

  async function queued(): Promise<WorkerOpenCall> {
    const one = open(`/up${CHAT}`, BODY);
    await untilStatus(scene.group, { queued: 1 });
    expect(await seen()).toEqual(ONE);
    return one;
  }

  it('its caller left the queue', async () => {
    (await queued()).leave();
    await untilStatus(scene.group, { queued: 0 });
    expect(await seen()).toEqual(ONE);
  });

  it('its operator took it out of the queue', async () => {
    const { response } = await queued();
    const { json } = await admin('GET', `/groups/${scene.group}/waiters`);
    const [{ ticket }] = json.waiters as [{ ticket: string }];
    await admin('DELETE', `/groups/${scene.group}/waiters/${ticket}`);
    expect((await response).headers.get('headgate-reason')).toBe('cancelled');
    expect(await seen()).toEqual(ONE);
  });

  it('its time was over', async () => {
    // It may be over before anybody could see that the call is queued.
    const { response } = open(`/up${CHAT}`, BODY, { 'headgate-max-wait': '50ms' });
    expect((await response).headers.get('headgate-reason')).toBe('queue_timeout');
    expect(await seen()).toEqual(ONE);
  });

  it('the queue was full', async () => {
    await change('PATCH', `/groups/${scene.group}`, { queue: { max_length: 1 } });
    const first = await queued();
    const { response } = open(`/up${CHAT}`, BODY);
    expect((await response).headers.get('headgate-reason')).toBe('queue_full');
    expect(await seen()).toEqual(ONE);
    first.leave();
    await untilStatus(scene.group, { queued: 0 });
  });

  it('its caller did not want to wait', async () => {
    const { response } = open(`/up${CHAT}`, BODY, { 'headgate-max-wait': '0' });
    expect((await response).headers.get('headgate-reason')).toBe('busy');
    expect(await seen()).toEqual(ONE);
  });
});

it('a call gives back all that it took of a narrow group when the wide one has no room', async () => {
  const strict = await strictScope('narrow', SILENT);
  const limits = { ...COUNTING, max_concurrency: 1 };
  await configure({
    upstreams: dialects(strict),
    groups: [
      { name: 'narrow', match: { models: ['m'] }, limits: COUNTING, holds: NO_COOLDOWN },
      { name: 'wide', match: { upstreams: ['up'] }, limits, holds: NO_COOLDOWN },
    ],
  });
  const scene = { strict, group: 'wide' };
  const holder = await streaming(scene, BODY.replace('"m"', '"n"'));
  const waiting = open(`/up${CHAT}`, BODY);
  await untilCounted('narrow', RESERVED);
  waiting.leave();
  await untilCounted('narrow', NOTHING);
  expect(await counted('wide')).toEqual(RESERVED);
  holder.leave();
  await holder.end;
  expect((await strict.stats()).total).toBe(1);
});

it('a call gives back its request whose caller leaves between the grant and the upstream', async () => {
  const { strict, group } = await newScene({}, { rpm: 100 });
  // A body of 32 KiB or less would be read before the slot is taken.
  const long = chatBody('one two three '.repeat(4_000));
  // The body is kept for a second try, so the call goes out when it has come whole: it never does.
  const { readable, writable } = new FixedLengthStream(long.length);
  const writer = writable.getWriter();
  void writer.write(new TextEncoder().encode(long.slice(0, 20))).catch(() => {});
  const client = new AbortController();
  const init = { method: 'POST', body: readable, signal: client.signal };
  const answer = call(`/up${CHAT}`, init).catch(() => 'gone');
  await untilCounted(group, { requests: 1 });
  client.abort();
  expect(await answer).toBe('gone');
  await untilCounted(group, NOTHING);
  expect((await strict.stats()).total).toBe(0);
});

describe('a call that the upstream did not serve counts as one request and no token:', () => {
  it('no connection, of which nobody can tell that it was never made', async () => {
    const { group } = await newScene(USAGE, COUNTING, { base_url: 'http://127.0.0.1:9' });
    const response = await post(`/up${CHAT}`, BODY);
    expect(response.headers.get('headgate-reason')).toBe('upstream_unreachable');
    await untilStatus(group, { in_use: 0 });
    await untilCounted(group, { ...NOTHING, requests: 1 });
  });

  it.each([
    ['refused for requests', 'requests', 429],
    ['refused for tokens', 'tokens', 429],
    ['refused for too many at once', 'concurrency', 429],
    ['overloaded', 'overload', 503],
    ['out of quota', 'quota', 429],
    ['an error of the upstream', 'error', 500],
    ['no answer', 'reset', 502],
  ])('%s', async (_, failure, status) => {
    const { strict, group } = await newScene(USAGE);
    await strict.failNext(failure, 1);
    const response = await post(`/up${CHAT}`, BODY, { headers: { 'headgate-max-wait': '0' } });
    expect(response.status).toBe(status);
    await response.text();
    await untilCounted(group, { ...NOTHING, requests: 1 });
  });

  it('a mistake of its caller', async () => {
    const { group } = await newScene(USAGE);
    const response = await post(`/up${CHAT}`, BODY, { headers: { 'x-strict-status': '400' } });
    expect(response.status).toBe(400);
    await response.text();
    await untilCounted(group, { ...NOTHING, requests: 1 });
  });

  it('and is reserved anew for each try', async () => {
    const { strict, group } = await newScene({ ...USAGE, retryAfterS: 0 });
    await strict.failNext('concurrency', 2);
    const response = await post(`/up${CHAT}`, BODY);
    expect(response.headers.get('headgate-tries')).toBe('3');
    await response.text();
    await untilCounted(group, { ...USED, requests: 3 });
  });
});

describe("by the provider's rule", () => {
  const GEMINI = '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse';
  const CONTENTS = [{ role: 'user', parts: [{ text: 'a question of some length' }] }];
  const gemini = JSON.stringify({ contents: CONTENTS, generationConfig: { maxOutputTokens: 300 } });
  const messages = chatBody('a question of some length', { stream: true, max_tokens: 5_000 });
  const chat = chatBody('a question of some length', { ...STREAM, max_tokens: 5_000 });

  it.each([
    // OpenAI counts what a call may write, and gives nothing back.
    [
      'openai',
      CHAT,
      chat,
      { inputTokens: 'estimate', outputTokens: 5_000 },
      { inputTokens: 70, outputTokens: 5_000 },
    ],
    // Anthropic counts output as it is written, and no input that a cache had.
    [
      'anthropic',
      '/v1/messages',
      messages,
      { inputTokens: 'estimate', outputTokens: 1_000 },
      { inputTokens: 50, outputTokens: 11 },
    ],
    // Gemini counts no output.
    [
      'gemini',
      GEMINI,
      gemini,
      { inputTokens: 'estimate', outputTokens: 0 },
      { inputTokens: 70, outputTokens: 0 },
    ],
  ])('of %s', async (id, path, body, reserved, used) => {
    const strict = await strictScope('profiles', { ...SILENT, ...USAGE });
    const group = `profile-${id}`;
    await configure({
      upstreams: [{ id, base_url: strict.url }],
      groups: [{ name: group, match: { upstreams: [id] }, limits: COUNTING, holds: NO_COOLDOWN }],
    });
    const one = open(`/${id}${path}`, body);
    const inputTokens = Math.ceil(body.length / 4);
    await untilCounted(group, { ...reserved, inputTokens });
    await until(async () => expect((await strict.stats()).inFlight).toBe(1));
    await strict.resume();
    expect(await one.end).toBe('done');
    await untilCounted(group, { ...used, reservedUsd: 0 });
  });
});
