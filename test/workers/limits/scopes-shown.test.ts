// Operators see which calls a refusal holds, until when, and how many.
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { asAdmin, bodyOf } from '../admin/ask.ts';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, configure, open, until } from '../support/worker.ts';

let made = 0;
let strict: Strict;
let name = '';

beforeEach(async () => {
  made += 1;
  strict = await strictScope('scopes-shown');
  name = `shown-${made}`;
  await configure({
    upstreams: [{ id: name, base_url: strict.url }],
    groups: [
      {
        name,
        match: { upstreams: [name] },
        limits: { max_concurrency: 5 },
        queue: { timeout_ms: 900_000 },
      },
    ],
  });
});

afterAll(nothingLeaks);

interface ScopesShownSent {
  readonly model?: string;
  readonly key?: string;
  readonly maxWait?: string;
  readonly headers?: Record<string, string>;
}

async function send({
  model = 'free',
  key = 'sk-a',
  maxWait = '0',
  headers = {},
}: ScopesShownSent = {}) {
  const answer = await call(`/${name}/v1/chat/completions`, {
    json: { model, messages: [{ role: 'user', content: 'hi' }] },
    headers: { authorization: `Bearer ${key}`, 'headgate-max-wait': maxWait, ...headers },
  });
  const lease = answer.headers.get('headgate-lease');
  return { status: answer.status, text: await answer.text(), lease };
}

const FULL = { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': '600000' };

/** Longer than the pause. */
const PATIENT = '900s';

async function group() {
  return bodyOf(await asAdmin('GET /groups/{name}/status', { params: { name } }));
}

/** Two models were called, and one is full. */
async function oneModelFull(): Promise<void> {
  expect((await send({ model: 'Full', headers: FULL })).status).not.toBe(200);
  expect((await send()).status).toBe(200);
}

/** Cancels all queued calls, and reads the answer of one of them. */
async function dropQueue(waiting: ReturnType<typeof send>) {
  bodyOf(await asAdmin('DELETE /waiters', { query: { upstream: name } }));
  const { status } = await waiting;
  expect(status).toBe(409);
}

describe('the status of a group', () => {
  it('shows the model that is full, and does not call the group paused', async () => {
    await oneModelFull();
    const waiting = send({ model: 'full', maxWait: PATIENT });
    await until(async () => expect((await group()).scopes?.[0]?.queued).toBe(1));
    const { state, paused_until, scopes, about, upstreams } = await group();
    expect({ state, paused_until, about }).toEqual({
      state: 'partly paused',
      paused_until: null,
      about: undefined,
    });
    expect(scopes).toMatchObject([
      {
        about: { model: 'full', service_tier: null, credential: expect.stringMatching(/^fp_/) },
        breaker: 'closed',
        limit: null,
        in_use: 0,
      },
    ]);
    const [scope] = scopes ?? [];
    expect(Date.parse(scope?.paused_until ?? '')).toBeGreaterThan(Date.now());
    expect(Date.parse(scope?.last_refused_at ?? '')).toBeLessThanOrEqual(Date.now());
    expect(upstreams[0]).toMatchObject({
      state: 'partly paused',
      paused_until: scope?.paused_until,
      stopped: [scope?.about],
    });
    await dropQueue(waiting);
  });

  it("shows a caller's refused key by its fingerprint, never the key", async () => {
    expect((await send({ key: 'sk-honest' })).status).toBe(200);
    expect((await send({ key: 'sk-spent', headers: FULL })).status).not.toBe(200);
    const shown = await group();
    expect(shown.scopes).toHaveLength(1);
    expect(shown.scopes?.[0]?.about).toMatchObject({
      credential: expect.stringMatching(/^fp_/),
    });
    expect(JSON.stringify(shown)).not.toContain('sk-spent');
  });

  it('names the only model of a group as the paused calls', async () => {
    expect((await send({ model: 'full', headers: FULL })).status).not.toBe(200);
    const { about, paused_until, state } = await group();
    expect(about).toMatchObject({ model: 'full' });
    expect(state).toBe('partly paused');
    expect(paused_until).not.toBeNull();
    expect((await send()).status).toBe(200);
    expect((await group()).paused_until).toBeNull();
  });
});

describe('the health of an upstream', () => {
  const health = async () =>
    bodyOf(await asAdmin('GET /upstreams/{id}', { params: { id: name } })).health;

  it('is partly paused while one model is stopped, and names it', async () => {
    expect((await send({ model: 'full', headers: FULL })).status).not.toBe(200);
    const only = await health();
    expect(only).toMatchObject({ state: 'partly paused', stopped: [{ model: 'full' }] });
    expect(Date.parse(only.paused_until ?? '')).toBeGreaterThan(Date.now());
    expect((await send()).status).toBe(200);
    expect(await health()).toMatchObject({
      state: 'partly paused',
      paused_until: only.paused_until,
      stopped: [{ model: 'full' }],
    });
  });
});

describe('a held call', () => {
  it('names the stopped calls in its error, its decision and the log of calls', async () => {
    await oneModelFull();
    const { status, text, lease } = await send({ model: 'full' });
    expect(status).toBe(429);
    expect(text).toContain('of model `full`');
    expect(text).toContain('with this provider key');
    expect(text).not.toContain('fp_');
    const scope = { model: 'full', service_tier: null, credential: expect.stringMatching(/^fp_/) };
    const { decisions } = bodyOf(
      await asAdmin('GET /groups/{name}/decisions', {
        params: { name },
        query: { outcome: 'rejected' },
      }),
    );
    expect(decisions[0]).toMatchObject({ model: 'full', waited_for: 'upstream_pause', scope });
    expect(lease).toBeNull();
    const found = bodyOf(await asAdmin('GET /calls', { query: { group: name } }));
    const line = found.calls.find(({ outcome }) => outcome === 'rejected');
    expect(line).toMatchObject({ waited_for: 'upstream_pause', scope });
  });

  it('names them also if the group has seen no other model', async () => {
    expect((await send({ model: 'full', headers: FULL })).status).not.toBe(200);
    expect((await send({ model: 'full' })).text).toContain('of model `full`');
    const { decisions } = bodyOf(
      await asAdmin('GET /groups/{name}/decisions', {
        params: { name },
        query: { outcome: 'rejected' },
      }),
    );
    expect(decisions[0]?.scope).toMatchObject({ model: 'full' });
  });

  it('names the limited calls after a timeout in the queue', async () => {
    const slow = { 'x-strict-silent-after-chunks': '1' };
    await strict.configure({ limitsByKey: { 'sk-small': 1 } });
    expect((await send({ key: 'sk-honest' })).status).toBe(200);
    const held = open(`/${name}/v1/chat/completions`, 'held', {
      headers: { authorization: 'Bearer sk-small', ...slow },
    });
    expect((await held.response).status).toBe(200);
    const waited = await send({ key: 'sk-small', maxWait: '2s' });
    expect(waited.status).toBe(429);
    expect(waited.text).toContain(
      'The upstream refuses or limits only calls with this provider key.',
    );
    const { decisions } = bodyOf(
      await asAdmin('GET /groups/{name}/decisions', {
        params: { name },
        query: { outcome: 'rejected' },
      }),
    );
    expect(decisions[0]?.rejection).toMatchObject({
      scope: { model: null, credential: expect.stringMatching(/^fp_/) },
    });
    held.leave();
  });

  it('names no scope if all calls wait', async () => {
    await oneModelFull();
    expect(
      (await asAdmin('POST /groups/switch', { body: { groups: [name], to: 'pause' } })).ok,
    ).toBe(true);
    expect((await send()).status).toBe(503);
    const { decisions } = bodyOf(
      await asAdmin('GET /groups/{name}/decisions', {
        params: { name },
        query: { outcome: 'rejected' },
      }),
    );
    expect(decisions[0]).toMatchObject({ waited_for: 'operator_pause' });
    expect(decisions[0]).not.toHaveProperty('scope');
  });
});

describe('the history of a group', () => {
  it('marks the pause of a model with its name, and not again when the pause moves to its scope', async () => {
    await oneModelFull();
    const marks = async () =>
      bodyOf(await asAdmin('GET /groups/{name}/history', { params: { name } })).markers;
    const [paused, ...others] = (await marks()).filter(({ actor }) => actor === null);
    expect(others).toEqual([]);
    expect(paused).toMatchObject({ kind: 'paused', scope: { model: 'full' } });
    expect(paused?.label).toContain('model full');
    expect((await send({ model: 'full' })).status).toBe(429);
    expect((await send({ model: 'other', headers: FULL })).status).not.toBe(200);
    const later = (await marks()).filter(({ actor }) => actor === null);
    expect(later.map(({ scope }) => scope?.model)).toEqual(['full', 'other']);
  });
});

describe('a change that makes a group count own keys together', () => {
  it('warns in the answer of the admin API, unless the group is split by key', async () => {
    const warningsOf = async (target: string, more: object): Promise<string[]> => {
      const body = { match: { upstreams: [name] }, limits: { max_concurrency: 5 }, ...more };
      return (await admin('PUT', `/groups/${target}`, body)).json.warnings;
    };
    const warned = expect.stringContaining('Set `partition_by: ["api_key"]`');
    expect(await warningsOf(`${name}-together`, {})).toContainEqual(warned);
    const apart = await warningsOf(`${name}-apart`, { partition_by: ['api_key'] });
    expect(apart).not.toContainEqual(warned);
  });
});
