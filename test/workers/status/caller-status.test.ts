// `GET /status`: what a caller sees of its own calls, and that it sees nothing of anybody else's.
import { beforeEach, describe, expect, it } from 'vitest';
import { callerStatusSchema, type CallerStatus } from '../../../src/contract/caller-api.ts';
import { directoryOf } from '../../../src/env.ts';
import { gatewayKeyHash, fingerprint } from '../../../src/runtime/secrets.ts';
import { strictScope } from '../support/strict.ts';
import { configure, call, env, until } from '../support/worker.ts';
import { NO_COOLDOWN, pool, queueUp, request, take } from '../support/pool.ts';

const hashOf = gatewayKeyHash;

/** Asks with headers, and takes what comes for JSON. */
async function ask(headers: Record<string, string>, path = '/status') {
  const response = await call(path, { headers });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

async function statusOf(key: string): Promise<CallerStatus> {
  const { status, text } = await ask({ authorization: `Bearer ${key}` });
  expect({ status, text: status === 200 ? '' : text }).toEqual({ status: 200, text: '' });
  return callerStatusSchema.parse(JSON.parse(text));
}

async function twoKeys(groups: readonly object[], fields: object = {}): Promise<void> {
  await configure({
    groups: groups.map((group) => ({ holds: NO_COOLDOWN, ...group })) as never,
    keys: [
      { id: 'mine', hash: await hashOf('hg_mine'), ...fields },
      { id: 'theirs', hash: await hashOf('hg_theirs') },
    ],
  });
}

/** Calls as a Worker would make them, at the version of now. */
async function asked(caller: string, more: object = {}) {
  const configVersion = (await directoryOf(env).snapshot(null))?.version ?? 0;
  return { caller, configVersion, ...more };
}

let names = 0;
function fresh(): string {
  names += 1;
  return `seen-${names}`;
}

beforeEach(async () => {
  await configure({});
});

describe('a gateway key', () => {
  it('sees its own calls with their places, and nothing of others but what places imply', async () => {
    const name = fresh();
    await twoKeys([{ name, limits: { max_concurrency: 3, rpm: 100 } }]);
    const held = [
      await take(name, `${name}-1`, await asked('theirs', { agent: 'secret-run' })),
      await take(name, `${name}-2`, await asked('theirs', { agent: 'secret-run' })),
      await take(name, `${name}-3`, await asked('mine')),
    ];
    const parked = [
      await queueUp(name, 'their-ticket', await asked('theirs', { model: 'secret-model' })),
      await queueUp(name, 'my-ticket', await asked('mine', { lane: 'low', agent: 'my-run' })),
    ];
    const mine = await statusOf('hg_mine');
    expect(mine.key).toMatchObject({ id: 'mine', kind: 'gateway', lane_max: 'normal' });
    expect(mine.may_use).toEqual([name]);
    expect(mine.groups).toHaveLength(1);
    expect(mine.groups[0]).toMatchObject({
      name,
      kind: 'configured',
      limits: { slots: 3, rates: { rpm: { limit: 100, left: null } } },
      in_flight: 1,
      slots_in_use: 1,
      waiting: [
        {
          ticket: 'my-ticket',
          position: 1,
          lane: 'low',
          model: 'gpt-4o',
          agent: 'my-run',
          upstream: 'openai',
        },
      ],
    });
    expect(JSON.stringify(mine)).not.toMatch(/theirs|their-ticket|secret/);
    const theirs = await statusOf('hg_theirs');
    expect(theirs.groups[0]).toMatchObject({ in_flight: 2, waiting: [{ position: 0 }] });
    expect(JSON.stringify(theirs)).not.toMatch(/mine|my-ticket|my-run/);
    await pool(name).dismiss('their-ticket');
    await pool(name).dismiss('my-ticket');
    await Promise.all(parked.map(({ answer }) => answer));
    for (const { lease } of held) await lease.release('unused', null);
    expect((await statusOf('hg_mine')).groups[0]).toMatchObject({ in_flight: 0, waiting: [] });
  });

  it('sees the groups that it may use, and no others', async () => {
    const [a, b, c, d] = [fresh(), fresh(), fresh(), fresh()];
    await twoKeys(
      [
        { name: a, match: { models: ['gpt-4o'] } },
        { name: b, match: { models: ['o3'] } },
        { name: c, match: { keys: ['theirs'] } },
        { name: d },
      ],
      { groups: [a] },
    );
    expect((await statusOf('hg_mine')).may_use.toSorted()).toEqual([a, d].toSorted());
    expect((await statusOf('hg_theirs')).may_use.toSorted()).toEqual([a, b, c, d].toSorted());
    const shown = (await statusOf('hg_mine')).groups.map(({ name }) => name);
    expect(shown.toSorted()).toEqual([a, d].toSorted());
  });

  it('sees what is left of its own limits, and its caps in groups that it shares', async () => {
    const name = fresh();
    const fairness = { max_concurrency_each: 2 };
    await twoKeys([{ name, limits: { max_concurrency: 9 }, fairness }], {
      limits: { max_concurrency: 4, rpm: 60, budget_usd: { per_day: 2 } },
    });
    const { lease } = await take('key:mine', `${name}-own`, await asked('mine'));
    const { groups } = await statusOf('hg_mine');
    expect(groups[0]).toMatchObject({
      name: 'key:mine',
      kind: 'key',
      limits: { slots: 4, budget_usd: { per_day: { limit: 2, left: expect.any(Number) } } },
      in_flight: 1,
    });
    // A minute's worth comes evenly: of 60 a few may go at once.
    expect(groups[0]?.limits.rates['rpm']).toEqual({ limit: 60, left: expect.any(Number) });
    expect(groups[1]).toMatchObject({ name, limits: { slots: 9, slots_each: 2 } });
    await lease.release('unused', null);
  });

  it('sees its own partition of a group that is split by callers, and no other', async () => {
    const name = fresh();
    await twoKeys([
      { name, partition_by: ['model', 'caller'], limits: { max_concurrency: 1, rpm: 30 } },
    ]);
    for (const caller of ['mine', 'theirs']) {
      await directoryOf(env).list({ group: name, partition: `gpt-4o,${caller}` });
    }
    await until(async () => {
      const { groups } = await statusOf('hg_mine');
      expect(groups.map(({ partition }) => partition)).toEqual(['gpt-4o,mine']);
    });
  });

  it('sees a pool that others share only while it has calls in it', async () => {
    const name = fresh();
    await twoKeys([{ name, partition_by: ['model'], limits: { max_concurrency: 2 } }]);
    const held = [];
    for (const partition of ['gpt-4o', 'o3']) {
      await directoryOf(env).list({ group: name, partition });
      const caller = partition === 'o3' ? 'theirs' : 'mine';
      const answer = await pool(`${name}#${partition}`).acquire(
        request(name, `${name}-${partition}`, await asked(caller, { partition })),
      );
      if (answer.kind !== 'granted') throw new Error(answer.kind);
      held.push(answer.lease);
    }
    await until(async () => {
      const { groups } = await statusOf('hg_mine');
      expect(groups.map(({ partition, in_flight }) => [partition, in_flight])).toEqual([
        ['gpt-4o', 1],
      ]);
    });
    for (const lease of held) await lease.release('unused', null);
    expect((await statusOf('hg_mine')).groups).toEqual([]);
  });

  it('that has more pools than one request asks is told how many are left out', async () => {
    const prefix = fresh();
    const groups = Array.from({ length: 70 }, (_, index) => ({ name: `${prefix}-${index}` }));
    await twoKeys(groups);
    const said = await statusOf('hg_mine');
    expect([said.groups.length, said.left_out, said.may_use.length]).toEqual([64, 6, 70]);
  });

  it.each(['headgate-key', 'x-api-key', 'api-key', 'x-goog-api-key'])(
    'may stand in %s',
    async (header) => {
      await twoKeys([]);
      expect((await ask({ [header]: 'hg_mine' })).status).toBe(200);
    },
  );
});

describe('a provider key', () => {
  it('sees its own automatic group, and configured ones only while it has calls there', async () => {
    const name = fresh();
    await configure({ groups: [{ name, limits: { max_concurrency: 5 }, holds: NO_COOLDOWN }] });
    const { fingerprintKey = '' } = (await directoryOf(env).snapshot(null)) ?? {};
    const own = await fingerprint(fingerprintKey, 'sk-own');
    const other = await fingerprint(fingerprintKey, 'sk-other');
    for (const partition of [own, other]) {
      await directoryOf(env).list({ group: 'auto:openai', partition });
    }
    await until(async () => {
      const { groups, key } = await statusOf('sk-own');
      expect(key).toMatchObject({ id: own, kind: 'provider' });
      expect(groups.map(({ name: group, partition }) => [group, partition])).toEqual([
        ['auto:openai', own],
      ]);
    });
    const { lease } = await take(name, `${name}-1`, await asked(own));
    const busy = await statusOf('sk-own');
    expect(busy.groups.map((group) => [group.name, group.in_flight])).toContainEqual([name, 1]);
    expect(busy.may_use).toEqual([]);
    expect((await statusOf('sk-other')).groups.map((group) => group.name)).toEqual(['auto:openai']);
    expect((await statusOf('sk-made-up')).groups).toEqual([]);
    await lease.release('unused', null);
  });
});

describe('nobody', () => {
  it.each<[string, Record<string, string>, string]>([
    ['no key', {}, 'requires a gateway key'],
    ['an unknown key', { authorization: 'Bearer hg_nobody' }, 'Unknown gateway key'],
    [
      'a provider key beside gateway keys',
      { authorization: 'Bearer sk-own' },
      'requires a gateway',
    ],
    ['the admin token', { authorization: 'Bearer test-admin-token' }, 'requires a gateway key'],
  ])('is let in with %s', async (_what, headers, detail) => {
    await twoKeys([{ name: fresh() }]);
    const said = await ask(headers);
    expect(said.status).toBe(401);
    expect(said.headers.get('content-type')).toBe('application/problem+json');
    expect(said.headers.get('www-authenticate')).toContain('Bearer');
    expect(JSON.parse(said.text).detail).toContain(detail);
  });

  it('is let in without any key where none are configured, nor with one in the address', async () => {
    expect((await ask({})).status).toBe(401);
    expect((await ask({}, '/status?key=sk-own')).status).toBe(401);
    await twoKeys([]);
    expect((await ask({}, '/status?key=hg_mine')).status).toBe(401);
  });

  it('is let in with a key that was revoked or has expired', async () => {
    await twoKeys([], { revoked_at: '2026-01-01T00:00:00Z' });
    expect((await ask({ 'headgate-key': 'hg_mine' })).status).toBe(401);
    await twoKeys([], { expires_at: '2026-01-01T00:00:00Z' });
    const { status, text } = await ask({ 'headgate-key': 'hg_mine' });
    expect([status, JSON.parse(text).detail]).toEqual([401, expect.stringContaining('expired')]);
  });
});

it('is JSON for a browser too', async () => {
  await twoKeys([]);
  const shown = await ask({ accept: 'text/html', authorization: 'Bearer hg_mine' });
  expect([shown.status, shown.headers.get('content-type')]).toEqual([200, 'application/json']);
  expect(shown.headers.get('cache-control')).toBe('no-store');
});

it('is asked for, and nothing else', async () => {
  for (const method of ['PUT', 'POST']) {
    expect((await call('/status', { method })).status).toBe(405);
  }
  expect((await call('/status/anything')).status).toBe(404);
});

describe('a pause that is about the key of one caller', () => {
  it('is shown to that caller only', async () => {
    const name = fresh();
    const { url } = await strictScope('caller-status');
    await configure({
      upstreams: [{ id: name, base_url: url }],
      groups: [{ name, match: { upstreams: [name] }, limits: { max_concurrency: 5 } }],
      keys: [
        { id: 'mine', hash: await hashOf('hg_mine') },
        { id: 'theirs', hash: await hashOf('hg_theirs') },
      ],
    });
    const headersOf = (key: string) => ({
      'headgate-key': `hg_${key}`,
      authorization: `Bearer sk-${key}`,
    });
    const send = async (key: string, model: string, headers: Record<string, string> = {}) => {
      const answer = await call(`/${name}/v1/chat/completions`, {
        json: { model, messages: [{ role: 'user', content: 'hi' }] },
        headers: { ...headersOf(key), 'headgate-max-wait': '0', ...headers },
      });
      await answer.text();
      return answer.status;
    };
    const groupFor = async (key: string) => {
      const { text } = await ask(headersOf(key));
      const { groups } = callerStatusSchema.parse(JSON.parse(text));
      return groups.find((group) => group.name === name);
    };
    const full = { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': '600000' };
    expect(await send('theirs', 'full', full)).not.toBe(200);
    const own = { model: 'full', credential: expect.stringMatching(/^fp_/) };
    expect(await groupFor('theirs')).toMatchObject({
      about: own,
      paused_until: expect.any(String),
    });
    const others = await groupFor('mine');
    expect(others).toMatchObject({ paused_until: null, limits: { slots: 5 } });
    expect(JSON.stringify(others)).not.toMatch(/full|fp_|about|pause_message/);
    expect(await send('mine', 'free')).toBe(200);
    expect(await groupFor('theirs')).toMatchObject({
      paused_until: null,
      scopes: [{ about: own, paused_until: expect.any(String) }],
    });
    expect(await groupFor('mine')).not.toHaveProperty('scopes');
  });
});
