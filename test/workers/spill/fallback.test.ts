// The same list serves after an error that another upstream would not have had.
import { afterAll, describe, expect, it } from 'vitest';
import { nothingLeaks, pool, untilStatus } from '../support/pool.ts';
import { call } from '../support/worker.ts';
import {
  ask,
  CHAT,
  heardBy,
  KEY,
  letGo,
  newScene,
  pathTo,
  post,
  served,
  servedBy,
  type SpillScene,
} from './scene.ts';

afterAll(nothingLeaks);

/** Nobody goes elsewhere for want of a slot here. */
const SPILL = { spill_to: ['b', 'c'] as const, after_ms: 60_000 };

const scene = (): Promise<SpillScene> => newScene({ spill: SPILL });

describe('a call goes to another upstream after', () => {
  it.each([
    ['an overload', 'overload'],
    ['an error of the server', 'error'],
    ['a connection that is reset before the headers', 'reset'],
    ['an exhausted quota', 'quota'],
    ['a limit of a day or more', 'long_window'],
    ['a refusal of what never fits there', 'never_fits'],
  ])('%s', async (_, failure) => {
    const at = await scene();
    await at.a.failNext(failure);
    const { by, headers } = await served(at);
    expect(by).toBe('ab');
    expect(headers.get('headgate-tries')).toBe('2');
    expect(headers.get('headgate-groups')).toBe(at.name('b'));
    await untilStatus(at.name('a'), { in_use: 0 });
  });

  it.each([503, 529, 500, 413])('the status %i', async (status) => {
    const at = await scene();
    await at.a.configure({ status });
    expect(await servedBy(at)).toBe('ab');
  });

  it.each(['gemini', 'bedrock'])(
    'a context that is too long there, in words of %s',
    async (refusal) => {
      const at = await newScene({ spill: SPILL, settings: { refusal } });
      await at.a.failNext('never_fits');
      expect(await servedBy(at)).toBe('ab');
    },
  );

  it('errors of two, to the third', async () => {
    const at = await scene();
    await at.a.failNext('overload');
    await at.b.failNext('reset');
    const { by, headers } = await served(at);
    expect(by).toBe('abc');
    expect(headers.get('headgate-tries')).toBe('3');
  });

  it('tries at its own, where its group allows them', async () => {
    const retries = { max: 1, budget: 1 };
    const at = await newScene({ spill: SPILL, groups: { a: { retries } } });
    await at.a.failNext('overload', 2);
    expect(await servedBy(at)).toBe('aab');
  });

  it('a limit that it waited for as often as it may', async () => {
    const at = await newScene({ spill: SPILL, settings: { failWaitMs: 0 } });
    await at.a.failNext('concurrency', 7);
    expect(await servedBy(at)).toBe('aaaaaaab');
  });
});

describe('a call does not go to another upstream', () => {
  it.each([
    ['after an error of its own', 400],
    ['whose key is refused', 401],
    ['for what does not exist', 404],
  ])('%s', async (_, status) => {
    const at = await scene();
    await at.a.configure({ status });
    const one = ask(at, 'call');
    expect((await one.response).status).toBe(status);
    await one.end;
    expect(await heardBy(at, 'call')).toBe('a');
  });

  it('after its answer has begun', async () => {
    const at = await scene();
    await at.a.failNext('cut');
    expect(await ask(at, 'call').end).toBe('cut');
    expect(await heardBy(at, 'call')).toBe('a');
  });

  it('whose body was too large to be kept', async () => {
    const retries = { max_body_bytes: 100 };
    const at = await newScene({ spill: SPILL, groups: { a: { retries } } });
    await at.a.failNext('reset');
    const body = JSON.stringify({
      model: 'm',
      messages: [{ role: 'user', content: 'x'.repeat(200) }],
    });
    const response = await post(pathTo(at, 'a'), body, KEY);
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ error: { code: 'upstream_unreachable' } });
    expect(await Promise.all([at.a, at.b].map(async (each) => (await each.stats()).total))).toEqual(
      [1, 0],
    );
  });

  it('that takes no slot: files and lists are of one upstream', async () => {
    const upstreams = { a: { allow: ['files'] } };
    const at = await newScene({ spill: { spill_to: ['b'] }, upstreams });
    await at.a.configure({ resetBeforeHeaders: true });
    for (const [method, path] of [
      ['GET', '/v1/models'],
      ['POST', '/v1/files'],
    ] as const) {
      const init = method === 'GET' ? {} : { body: '{}' };
      const response = await call(pathTo(at, 'a', path), { method, headers: KEY, ...init });
      expect(response.status).toBe(502);
      await response.text();
    }
    expect((await at.b.stats()).uncounted).toBe(0);
  });
});

it('where it fits nowhere, its caller hears what the last one said', async () => {
  const at = await scene();
  for (const each of [at.a, at.b, at.c]) await each.failNext('never_fits');
  const one = ask(at, 'call');
  const { status, headers } = await one.response;
  expect([status, headers.get('x-should-retry')]).toEqual([429, 'false']);
  await one.end;
  expect(await heardBy(at, 'call')).toBe('abc');
});

it('of the last upstream the caller hears what it said', async () => {
  const at = await newScene({ spill: { spill_to: ['b'], after_ms: 60_000 } });
  await at.a.configure({ status: 503 });
  await at.b.configure({ status: 529, retryAfterS: 9 });
  const response = await post(pathTo(at, 'a', CHAT), '{"model":"m","messages":[]}', KEY);
  expect(response.status).toBe(529);
  expect(response.headers.get('retry-after')).toBe('9');
  expect(response.headers.has('headgate-reason')).toBe(false);
  await response.text();
});

it('an error counts where it was made, and nowhere else', async () => {
  const at = await scene();
  await at.a.failNext('error');
  expect(await servedBy(at)).toBe('ab');
  const refusals = async (letter: 'a' | 'b') =>
    (await pool(at.name(letter)).status()).refusals_total;
  expect([await refusals('a'), await refusals('b')]).toEqual([{ error: 1 }, {}]);
  await letGo(at);
});
