// One call that is refused as if for a limit whatever happens: the others go on, and so does the stream
// that gets comments while it waits.
import { afterAll, describe, expect, it } from 'vitest';
import { keptAlive, restOf, withoutSignsOfLife } from '../order/event-stream.ts';
import { nothingLeaks } from '../support/pool.ts';
import { call, type WorkerOpenCall } from '../support/worker.ts';
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
  type LimitsStage,
} from './stage.ts';

afterAll(nothingLeaks);

const PAUSE_MS = 20_000;

describe('a call that is always refused', () => {
  it.each(['requests', 'tokens', 'ramp'])(
    'for %s pauses its group once, is sent four times, and the others are served',
    async (kind) => {
      const stage = await newStage();
      const headers = { 'x-strict-fail': kind, 'x-strict-fail-wait-ms': String(PAUSE_MS) };
      const poison = send(stage, 'poison', { headers });
      await untilGroup(stage, { queued: 1, refusals_total: { [kind]: 1 } });
      expect(pausedMs(await statusOf(stage))).toBeGreaterThan(10_000);
      const others = Array.from({ length: 12 }, (_, at) => send(stage, `o${at}`));
      await untilGroup(stage, { queued: 13 });
      await later(stage, PAUSE_MS);
      // No time passes any more, so another pause would hold everybody here.
      await expectGoneRound(stage, kind, poison, others);
      expect((await statusOf(stage)).paused_until).toBeNull();
    },
  );

  it('for too many at once is sent seven times, and the others are served', async () => {
    const stage = await newStage();
    const poison = send(stage, 'poison', { headers: { 'x-strict-fail': 'concurrency' } });
    const others = Array.from({ length: 12 }, (_, at) => send(stage, `o${at}`));
    await expectGoneRound(stage, 'concurrency', poison, others, 7);
    expect((await statusOf(stage)).paused_until).toBeNull();
  });

  it('for too many at once, again and again beside few, leaves the others what they had', async () => {
    const stage = await newStage({ group: { limits: { max_concurrency: 64 } } });
    const some = (count: number, round: number) =>
      Promise.all(
        Array.from({ length: count }, (_, at) => {
          const headers = { 'headgate-max-wait': '0' };
          return streaming(stage, `o${round}-${at}`, { headers });
        }),
      );
    // It has seen that the upstream takes six at once, often enough that it was no chance.
    const five = await some(5, 0);
    for (let sixth = 0; sixth < 8; sixth += 1) {
      expect(await reportedBy(send(stage, 'sixth'))).toEqual(served(1));
      await untilGroup(stage, { in_use: 5 });
    }
    await finish(stage, ...five);
    const kept = await some(2, 1);
    const headers = { 'x-strict-fail': 'concurrency', 'headgate-max-wait': '0' };
    for (let poisons = 1; poisons <= 5; poisons += 1) {
      expect(await reportedBy(send(stage, 'poison', { headers }))).toMatchObject({ status: 429 });
      await untilGroup(stage, { in_use: 2, refusals_total: { concurrency: poisons } });
      await later(stage, 10_000);
    }
    // Each of these is refused if there is no slot for it at once.
    await finish(stage, ...kept, ...(await some(4, 2)));
  });

  async function expectGoneRound(
    stage: LimitsStage,
    kind: string,
    poison: WorkerOpenCall,
    others: readonly WorkerOpenCall[],
    attempts = 4,
  ): Promise<void> {
    expect(await reportedBy(poison)).toEqual({ ...served(attempts), status: 429 });
    for (const one of others) expect(await reportedBy(one)).toEqual(served(1));
    await untilGroup(stage, { in_use: 0, refusals_total: { [kind]: attempts } });
    expect((await arrived(stage)).filter((label) => label === 'poison')).toHaveLength(attempts);
  }

  it('first for one cause and then for a rate pauses its group all the same', async () => {
    const stage = await newStage({ settings: { failWaitMs: PAUSE_MS } });
    await stage.strict.failNext('concurrency');
    await stage.strict.failNext('requests');
    const one = send(stage, 'one');
    await untilGroup(stage, { refusals_total: { concurrency: 1, requests: 1 }, queued: 1 });
    expect(pausedMs(await statusOf(stage))).toBeGreaterThan(10_000);
    await later(stage, PAUSE_MS);
    expect(await reportedBy(one)).toEqual(served(3));
  });
});

describe('behind the comments of a stream that waits', () => {
  const KEEPALIVE = { queue: { keepalive: { after_ms: 100, every_ms: 1_000 } } };
  const messages = [{ role: 'user', content: 'x' }];
  const json = { model: 'm', max_tokens: 9, stream: true, messages };

  const SHAPES = [
    ['openai', 'openai', 'v1/chat/completions'],
    ['openai responses', 'openai', 'v1/responses'],
    ['anthropic', 'anthropic', 'v1/messages'],
    ['gemini', 'gemini', 'v1beta/models/m:streamGenerateContent?alt=sse'],
  ] as const;

  it.each(SHAPES)('comes the answer of a later try: %s', async (_, dialect, path) => {
    const stage = await newStage({ group: KEEPALIVE, upstream: { dialect } });
    await stage.strict.configure({ failWaitMs: PAUSE_MS });
    await stage.strict.failNext('requests');
    const init = { json: dialect === 'gemini' ? { contents: [] } : json };
    const { reader, first } = await keptAlive(`/${stage.upstream}/${path}`, init);
    await untilGroup(stage, { queued: 1, refusals_total: { requests: 1 } });
    await later(stage, PAUSE_MS);
    const text = withoutSignsOfLife(first + (await restOf(reader)));
    const straight = await call(`/${stage.upstream}/${path}`, init);
    expect(text).toBe(withoutSignsOfLife(await straight.text()));
    expect(text).toContain('data: ');
  });

  it('comes a refusal of ours as the last event, if there is no turn before the deadline', async () => {
    const stage = await newStage({ group: KEEPALIVE, settings: { limit: 1 } });
    const holder = await streaming(stage, 'holder');
    const headers = { 'headgate-max-wait': '700ms' };
    const { reader, first } = await keptAlive(stage.chat, { json, headers });
    const text = withoutSignsOfLife(first + (await restOf(reader)));
    expect(text).toMatch(/^data: \{"error":\{.*"code":"queue_timeout"\}\}\n\n$/);
    expect(await statusOf(stage)).toMatchObject({ refusals_total: { concurrency: 1 } });
    await finish(stage, holder);
  });

  it.each(SHAPES)(
    "comes the upstream's own refusal as the last event: %s",
    async (_, dialect, path) => {
      const stage = await newStage({ group: KEEPALIVE, upstream: { dialect } });
      const headers = { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': String(PAUSE_MS) };
      const init = { json: dialect === 'gemini' ? { contents: [] } : json, headers };
      const { reader, first } = await keptAlive(`/${stage.upstream}/${path}`, init);
      await untilGroup(stage, { queued: 1, refusals_total: { requests: 1 } });
      await later(stage, PAUSE_MS);
      expect(withoutSignsOfLife(first + (await restOf(reader)))).toMatch(LAST_EVENT[dialect]);
      expect((await stage.strict.stats()).total).toBe(4);
    },
  );
});

const LAST_EVENT = {
  openai: /"message":"Rate limit reached for m /,
  anthropic: /^event: error\ndata: \{"type":"error","error":\{.*\}\n\n$/,
  gemini: /^data: \{"error":\{"code":\d+/,
};
