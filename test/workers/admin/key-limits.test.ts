// Limits and weights of keys, from the admin API to calls that use them.
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { pool, queueUp, take } from '../support/pool.ts';
import { env, until } from '../support/worker.ts';
import { asAdmin, bodyOf } from './ask.ts';
import { ask, CHAT, configureFor, makeKey, read } from './keys-scene.ts';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('key-limits', { chunks: 2, chunkDelayMs: 5 });
});

beforeEach(() => configureFor(strict));

describe('the limits of a key', () => {
  it('make a group of its own, which is gone with them', async () => {
    const secret = await makeKey({ limits: { max_concurrency: 3 } });
    expect((await ask(secret)).groups).toContain('key:team');
    const status = bodyOf(
      await asAdmin('GET /groups/{name}/status', { params: { name: 'key:team' } }),
    );
    expect(status).toMatchObject({ kind: 'key', limit: { configured: 3, effective: 3 } });
    expect(
      (await asAdmin('PATCH /groups/{name}', { params: { name: 'key:team' }, body: {} })).status,
    ).toBe(404);
    const { version } = bodyOf(
      await asAdmin('PATCH /keys/{id}', { params: { id: 'team' }, body: { limits: null } }),
    );
    await read(version);
    expect((await ask(secret)).groups).not.toContain('key:team');
  });

  it('hold over all groups that it calls', async () => {
    const secret = await makeKey({ limits: { max_concurrency: 1 } });
    const scope = await strict.stats();
    const calls = Array.from({ length: 6 }, (_, at) =>
      ask(secret, at % 2 === 0 ? CHAT : '/other/v1/chat/completions'),
    );
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(6).fill(200));
    const { total, peak } = await strict.stats();
    expect(total - scope.total).toBe(6);
    expect(peak).toBe(1);
  });

  it('refuse what is over its rate and its budget', async () => {
    const slow = await makeKey({ limits: { rpm: 1 } });
    expect((await ask(slow)).status).toBe(200);
    expect((await ask(slow, CHAT, { 'headgate-max-wait': '0' })).status).toBe(429);
    const poor = await makeKey({ limits: { budget_usd: { per_day: 0 } } }, 'poor');
    expect(await ask(poor)).toMatchObject({ status: 402, reason: 'budget_exhausted' });
  });

  it('change at once, and nobody else waits for them', async () => {
    const secret = await makeKey({ limits: { max_concurrency: 0 } });
    const free = await makeKey({}, 'free');
    const waits = ask(secret);
    await until(async () => {
      const { waiters } = bodyOf(
        await asAdmin('GET /groups/{name}/waiters', { params: { name: 'key:team' } }),
      );
      expect(waiters).toHaveLength(1);
    });
    expect((await ask(free)).status).toBe(200);
    bodyOf(
      await asAdmin('PATCH /keys/{id}', {
        params: { id: 'team' },
        body: { limits: { max_concurrency: 1 } },
      }),
    );
    expect((await waits).status).toBe(200);
  });
});

it('the weight of a key holds in every configured group that names none for it', async () => {
  await makeKey({ weight: 3 });
  bodyOf(
    await asAdmin('PATCH /groups/{name}', {
      params: { name: 'mini' },
      body: { fairness: { weights: { team: 5 } } },
    }),
  );
  const weights = async (name: string) => {
    const { config } = await directoryOf(env).definition(name);
    return JSON.parse(config ?? '{}').fairness.weights;
  };
  expect(await weights('everything')).toEqual({ team: 3 });
  expect(await weights('mini')).toEqual({ team: 5 });
  expect(
    bodyOf(await asAdmin('GET /groups/{name}', { params: { name: 'everything' } })).fairness
      .weights,
  ).toEqual({});
});

it('the weight of a key holds in automatic groups too, and changes for those who wait', async () => {
  await makeKey({ weight: 3 });
  const name = 'auto:wired';
  const asked = async (ticket: string, caller: string) => ({
    assumed: { slotsMax: 1, source: 'unknown' as const },
    configVersion: (await directoryOf(env).snapshot(null))?.version ?? 0,
    ticketId: ticket,
    caller,
  });
  await directoryOf(env).list({ group: name, partition: null });
  const { lease } = await take(name, 'holder', await asked('holder', 'somebody'));
  const parked = [];
  for (let call = 0; call < 8; call += 1) {
    for (const caller of ['other', 'team']) {
      const ticket = `${caller}-${call}`;
      parked.push(await queueUp(name, ticket, await asked(ticket, caller)));
    }
  }
  const ofTeam = async () =>
    (await pool(name).waiters()).slice(0, 8).filter(({ tenant }) => tenant === 'team').length;
  // Of eight grants six go to who has thrice the weight.
  expect(await ofTeam()).toBe(6);
  bodyOf(await asAdmin('PATCH /keys/{id}', { params: { id: 'team' }, body: { weight: 1 } }));
  await until(async () => expect(await ofTeam()).toBe(4));
  for (const { ticket } of await pool(name).waiters()) await pool(name).dismiss(ticket);
  await Promise.all(parked.map(({ answer }) => answer));
  await lease.release('unused', null);
});
