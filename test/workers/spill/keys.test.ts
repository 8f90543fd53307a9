// Whose keys a call takes along when it goes elsewhere: never those that its caller brought, and the
// operator's only behind a gateway key.
import { env as bindings } from 'cloudflare:workers';
import { afterAll, describe, expect, it } from 'vitest';
import type { Env } from '../../../src/env.ts';
import { NO_PLACE, takePlace } from '../../../src/call/identity/new-keys.ts';
import { refusal } from '../order/scene.ts';
import { nothingLeaks, untilStatus } from '../support/pool.ts';
import { admin, change, until } from '../support/worker.ts';
import {
  ask,
  heardBy,
  hold,
  KEY,
  letGo,
  newScene,
  pathTo,
  post,
  SECRET,
  servedBy,
  type Echo,
  type SpillScene,
} from './scene.ts';

afterAll(nothingLeaks);

const ASKED = { request: new Request('https://gate.test/'), env: bindings as Env };

const SPILL = { spill_to: ['b'] as const };
const OWN_KEY = 'sk-of-the-caller-815';
const BODY = '{"model":"m","messages":[]}';

/** Reads the request that an upstream got from an answer of `echo`. */
async function echoed(response: Response): Promise<Echo & { readonly all: string }> {
  expect(response.status).toBe(200);
  const all = await response.text();
  return { ...(JSON.parse(all) as Echo), all };
}

/** The bearer token, and which of the caller's keys were there as well, wherever. */
function keysIn({ headers, all }: Echo & { readonly all: string }): (string | undefined)[] {
  const { authorization } = headers;
  return [
    authorization,
    ...[OWN_KEY, KEY['headgate-key'] ?? ''].filter((key) => all.includes(key)),
  ];
}

const OPERATORS_ONLY = [`Bearer ${SECRET}`];

describe("a caller's own provider key", () => {
  it.each<[string, Record<string, string>, string]>([
    ['as a bearer token', { authorization: `Bearer ${OWN_KEY}` }, ''],
    ['in a header of another dialect', { 'x-api-key': OWN_KEY }, ''],
    ['in several places', { authorization: `Bearer ${OWN_KEY}`, 'api-key': OWN_KEY }, ''],
    ['in the query', {}, `?key=${OWN_KEY}`],
    [
      'beside one of a gateway',
      { authorization: `Bearer ${OWN_KEY}`, 'cf-aig-authorization': `Bearer ${OWN_KEY}` },
      '',
    ],
    [
      'in places that some know',
      { 'api-key': OWN_KEY, 'x-portkey-api-key': OWN_KEY, cookie: `session=${OWN_KEY}` },
      `?access_token=${OWN_KEY}`,
    ],
  ])(
    'goes to the upstream that it is for, and not to the other one: %s',
    async (_, headers, query) => {
      const scene = await newScene({ spill: SPILL });
      await scene.a.configure({ echo: true });
      await scene.b.configure({ echo: true });
      const path = pathTo(scene, 'a') + query;
      const own = await echoed(await post(path, BODY, { ...KEY, ...headers }));
      expect(own.all).toContain(OWN_KEY);
      expect(own.all).not.toContain(SECRET);
      await scene.a.failNext('quota');
      expect(keysIn(await echoed(await post(path, BODY, { ...KEY, ...headers })))).toEqual(
        OPERATORS_ONLY,
      );
      expect((await scene.b.stats()).total).toBe(1);
    },
  );

  it('not to the other one either when that is configured anew while the call waits there', async () => {
    const scene = await newScene({ spill: SPILL });
    await scene.b.configure({ echo: true });
    const holders = [await hold(scene, 'a'), await holdPlain(scene)];
    const headers = { ...KEY, authorization: `Bearer ${OWN_KEY}` };
    const waiting = post(pathTo(scene, 'a'), BODY, headers);
    await untilStatus(scene.name('b'), { queued: 1 });
    await change('DELETE', `/groups/${scene.name('b')}`);
    expect(keysIn(await echoed(await waiting))).toEqual(OPERATORS_ONLY);
    await letGo(scene, ...holders);
  });

  it('not where the operator has taken the key out meanwhile: it waits at its own again', async () => {
    const scene = await newScene({ spill: SPILL });
    await scene.b.configure({ echo: true });
    const holders = [await hold(scene, 'a'), await holdPlain(scene)];
    const headers = { ...KEY, authorization: `Bearer ${OWN_KEY}` };
    const waiting = post(pathTo(scene, 'a'), BODY, headers);
    await untilStatus(scene.name('b'), { queued: 1 });
    const { json: config } = await admin('GET', '/config');
    const upstreams = config.upstreams.map((upstream: { id: string }) =>
      upstream.id === scene.name('b') ? { ...upstream, auth: 'passthrough' } : upstream,
    ) as unknown[];
    const groups = config.groups
      .filter(({ name }: { name: string }) => name !== scene.name('b'))
      .map((group: object) => ({ ...group, on_saturated: 'queue' })) as unknown[];
    await change('PUT', '/config', { ...config, upstreams, groups, version: undefined });
    await untilStatus(scene.name('a'), { queued: 1 });
    await letGo(scene, ...holders);
    const response = await waiting;
    expect(response.status).toBe(200);
    await response.text();
    expect((await scene.b.stats()).total).toBe(1);
  });
});

/** A call that holds the slot of `b`, though that echoes. */
async function holdPlain(scene: SpillScene) {
  const headers = { 'x-strict-echo': '0', 'x-strict-silent-after-chunks': '1' };
  const holder = ask(scene, 'holds b', { headers }, 'b');
  await until(async () => expect((await scene.b.stats()).inFlight).toBe(1));
  return holder;
}

it.each(['/v1/batches/..;/chat/completions', '/v1/chat/completions;x'])(
  "a path that the operator's key is closed to stays with the caller's own: %s",
  async (path) => {
    const scene = await newScene({ spill: SPILL });
    const headers = { ...KEY, authorization: `Bearer ${OWN_KEY}` };
    await scene.a.failNext('quota');
    const response = await post(pathTo(scene, 'a', path), BODY, headers);
    expect({ status: response.status, reason: response.headers.get('headgate-reason') }).toEqual({
      status: 429,
      reason: null,
    });
    expect((await scene.b.stats()).total).toBe(0);
  },
);

it('without a gateway key a call goes nowhere else', async () => {
  const scene = await newScene({ spill: SPILL });
  const { json: config } = await admin('GET', '/config');
  const upstreams = config.upstreams.map((upstream: { id: string }) =>
    upstream.id === scene.name('a') ? { ...upstream, auth: 'passthrough' } : upstream,
  ) as unknown[];
  await change('PUT', '/config', { ...config, upstreams, keys: [], version: undefined });
  const headers = { authorization: `Bearer ${OWN_KEY}`, 'headgate-key': '' };
  const holder = ask(scene, 'holds a', {
    headers: { ...headers, 'x-strict-silent-after-chunks': '1' },
  });
  await until(async () => expect((await scene.a.stats()).inFlight).toBe(1));
  const waits = ask(scene, 'waits', { headers });
  await untilStatus(scene.name('a'), { queued: 1 });
  const hurried = ask(scene, 'hurried', { headers: { ...headers, 'headgate-max-wait': '0' } });
  expect(await refusal(hurried)).toMatchObject({ reason: 'busy' });
  await scene.a.failNext('quota');
  holder.leave();
  expect((await waits.response).status).toBe(429);
  expect((await scene.b.stats()).total).toBe(0);
  await letGo(scene, holder, waits);
});

/** Has the upstreams of some letters take keys otherwise, for callers without a gateway key. */
async function withoutKeys(auth: Readonly<Record<string, string>>): Promise<void> {
  const { json: config } = await admin('GET', '/config');
  const upstreams = config.upstreams.map((upstream: { id: string }) => ({
    ...upstream,
    ...(auth[upstream.id] !== undefined && { auth: auth[upstream.id] }),
  })) as unknown[];
  await change('PUT', '/config', { ...config, upstreams, keys: [], version: undefined });
}

describe('to an upstream that takes no key', () => {
  const headers = {
    authorization: `Bearer ${OWN_KEY}`,
    'x-api-key': OWN_KEY,
    'x-team-token': OWN_KEY,
    cookie: `session=${OWN_KEY}`,
  };

  it("a caller's own call goes on, and none of its keys with it", async () => {
    const scene = await newScene({ spill: { spill_to: ['c', 'b'] } });
    await withoutKeys({ [scene.name('a')]: 'passthrough', [scene.name('b')]: 'none' });
    await scene.b.configure({ echo: true });
    await scene.a.failNext('quota');
    const response = await post(`${pathTo(scene, 'a')}?key=${OWN_KEY}`, BODY, headers);
    const echo = await echoed(response);
    expect(JSON.stringify(echo)).not.toContain(OWN_KEY);
    expect(echo.query).toBe('');
    // The operator's key goes out behind a gateway key only.
    expect((await scene.c.stats()).total).toBe(0);
  });

  it('that it was served there says nothing of the key that it was made with', async () => {
    const scene = await newScene({ spill: SPILL });
    await withoutKeys({ [scene.name('a')]: 'passthrough', [scene.name('b')]: 'none' });
    const made = `sk-made-up-${scene.name('a')}`;
    const { json } = await admin('POST', '/fingerprint', { key: made });
    const known = () => takePlace(ASKED, `${scene.name('a')} ${json.fingerprint}`) === NO_PLACE;
    const send = () => post(pathTo(scene, 'a'), BODY, { authorization: `Bearer ${made}` });
    await scene.a.failNext('quota');
    expect((await send()).status).toBe(200);
    expect(known()).toBe(false);
    expect((await send()).status).toBe(200);
    expect(known()).toBe(true);
    expect([(await scene.a.stats()).total, (await scene.b.stats()).total]).toEqual([2, 1]);
  });

  it('a call that is made to it brings it none either', async () => {
    const scene = await newScene({ spill: SPILL });
    await withoutKeys({ [scene.name('b')]: 'none' });
    await scene.b.configure({ echo: true });
    const { authorization } = headers;
    const response = await post(pathTo(scene, 'b'), BODY, { authorization });
    expect(JSON.stringify(await echoed(response))).not.toContain(OWN_KEY);
  });
});

it("a list that would send callers' own keys elsewhere is refused when it is saved", async () => {
  const scene = await newScene({ spill: SPILL });
  const { json: config } = await admin('GET', '/config');
  const upstreams = config.upstreams.map((upstream: { id: string }) =>
    upstream.id === scene.name('b') ? { ...upstream, auth: 'passthrough' } : upstream,
  ) as unknown[];
  const whole = await admin('PUT', '/config', { ...config, upstreams, version: undefined });
  expect(whole).toMatchObject({ status: 422 });
  expect(whole.json.errors).toEqual([
    {
      path: 'groups[0].on_saturated.spill_to[0]',
      message: expect.stringContaining("callers' own keys") as string,
    },
  ]);
  const group = await admin('PATCH', `/groups/${scene.name('a')}`, {
    on_saturated: { spill_to: [{ upstream: 'openai', model: 'm' }] },
  });
  expect(group).toMatchObject({ status: 422 });
  expect(group.json.errors[0]).toMatchObject({ path: 'on_saturated.spill_to[0].upstream' });
  const holder = await hold(scene, 'a');
  expect(await servedBy(scene)).toBe('b');
  expect(await heardBy(scene, 'call')).toBe('b');
  await letGo(scene, holder);
});
