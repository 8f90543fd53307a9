// Tiers of service in budgets: the requested tier is reserved, the reported one is charged, and unknown ones are refused.
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { closeAll, connect, create, keyHash, untilEvent } from '../sockets/client.ts';
import { nothingLeaks, NO_COOLDOWN, pool } from '../support/pool.ts';
import { pack } from '../support/packing.ts';
import { strictScope, type Settings, type Strict } from '../support/strict.ts';
import { configure, until } from '../support/worker.ts';
import { CHAT, chatBody, post, untilCounted } from './scene.ts';

afterEach(closeAll);
afterAll(nothingLeaks);

type TiersGroup = NonNullable<ConfigInput['groups']>[number];

/** USD per million tokens. A call has 100 tokens of input and 10 of output: 300 millionths. */
const PRICE = { input: 2, output: 10 };
const USAGE: Settings = { inputTokens: 100, outputTokens: 10 };
const USD = 0.0003;

const BUDGET: TiersGroup['limits'] = { budget_usd: { per_day: 1 } };

let scenes = 0;

interface TiersScene {
  readonly strict: Strict;
  readonly group: string;
}

async function scene(
  settings: Settings = {},
  fields: Partial<TiersGroup> = {},
  upstream: object = {},
  more: Partial<ConfigInput> = {},
): Promise<TiersScene> {
  scenes += 1;
  const group = `tiers-${scenes}`;
  const strict = await strictScope('tiers', { ...USAGE, ...settings });
  const common = { base_url: strict.url, prices: { '*': PRICE } };
  const match = { upstreams: ['openai', 'anthropic', 'bare'] };
  await configure({
    upstreams: [
      { id: 'openai', websocket: 'turns', ...common, ...upstream },
      { id: 'anthropic', ...common },
      { id: 'bare', ...common },
    ],
    groups: [{ name: group, match, limits: BUDGET, holds: NO_COOLDOWN, ...fields }],
    ...more,
  });
  return { strict, group };
}

const ask = (fields: object, id = 'openai', headers: Record<string, string> = {}) =>
  post(`/${id}${CHAT}`, chatBody('a question', { model: 'gpt-5', max_tokens: 10, ...fields }), {
    headers,
  });

async function served(answer: Promise<Response>): Promise<void> {
  const { status, ...response } = await answer.then(async (one) => ({
    status: one.status,
    text: await one.text(),
  }));
  expect([status, response.text]).toEqual([200, expect.any(String)]);
}

async function refused(answer: Response): Promise<string> {
  expect(answer.status).toBe(400);
  expect(answer.headers.get('headgate-reason')).toBe('price_unknown');
  expect(answer.headers.get('x-should-retry')).toBe('false');
  return answer.text();
}

describe('the settlement', () => {
  it.each([
    ['as asked for, where the answer reports none', { service_tier: 'priority' }, null, 2],
    ['as reported, where another tier has served', { service_tier: 'priority' }, 'default', 1],
    ['as reported, where the project decides', { service_tier: 'auto' }, 'priority', 2],
    ['as reported, where none was asked for', {}, 'priority', 2],
    ['less, where it costs less', { service_tier: 'flex' }, 'flex', 0.5],
    ['the standard price', {}, null, 1],
    ['the most expensive one, where the reported one is unknown', {}, 'hyper', 2],
  ])('counts %s', async (_, fields, serviceTier, factor) => {
    const { group } = await scene({ serviceTier });
    await served(ask(fields));
    await expect(
      untilCounted(group, { usd: Number((USD * factor).toFixed(9)), reservedUsd: 0 }),
    ).resolves.toBeUndefined();
  });

  it('counts the tier that a stream reports', async () => {
    const { group } = await scene({ serviceTier: 'priority' });
    await served(ask({ stream: true, stream_options: { include_usage: true } }));
    await expect(untilCounted(group, { usd: 2 * USD })).resolves.toBeUndefined();
  });

  it('counts the speed of Anthropic', async () => {
    const { group } = await scene({ serviceTier: 'fast' });
    const fields = { model: 'claude-opus-4-8', max_tokens: 10, speed: 'fast' };
    const body = chatBody('a question', fields);
    await served(
      post('/anthropic/v1/messages', body, { headers: { 'anthropic-version': '2023-06-01' } }),
    );
    await expect(untilCounted(group, { usd: 2 * USD })).resolves.toBeUndefined();
  });

  it('counts the tiers of the operator', async () => {
    const prices = { '*': { ...PRICE, tiers: { priority: 3, auto: 4 } } };
    const { group } = await scene({}, {}, { prices });
    await served(ask({ service_tier: 'priority' }));
    await expect(untilCounted(group, { usd: 3 * USD })).resolves.toBeUndefined();
    await served(ask({}));
    await expect(
      untilCounted(group, { usd: Number((7 * USD).toFixed(9)) }),
    ).resolves.toBeUndefined();
  });

  it('counts a tier that a header asks for', async () => {
    const prices = { '*': { ...PRICE, tiers: { priority: 3 } } };
    const { group } = await scene({}, {}, { prices });
    await served(ask({}, 'openai', { 'x-amzn-bedrock-service-tier': 'priority' }));
    await expect(
      untilCounted(group, { usd: Number((3 * USD).toFixed(9)) }),
    ).resolves.toBeUndefined();
  });
});

it('the reservation counts the tier that is asked for', async () => {
  const held = { chunks: 2, silentAfterChunks: 1 };
  const { strict, group } = await scene(held);
  const reserved = async (fields: object): Promise<number> => {
    const { total } = await strict.stats();
    const answer = ask({ stream: true, ...fields });
    await until(async () => expect((await strict.stats()).total).toBe(total + 1));
    const { spend } = await pool(group).status();
    await strict.resume();
    await (await answer).text();
    await expect(untilCounted(group, { reservedUsd: 0 })).resolves.toBeUndefined();
    return spend?.reserved_usd ?? 0;
  };
  // The names, and so the bodies, have the same length.
  const standard = await reserved({ service_tier: 'default' });
  expect(await reserved({ service_tier: 'priority' })).toBeGreaterThan(1.9 * standard);
});

it('a call whose tier does not fit into the budget is refused', async () => {
  // The estimate of the call is more than half of it.
  const limits: TiersGroup['limits'] = { budget_usd: { per_day: 0.0003 } };
  const { strict } = await scene({}, { limits });
  const answer = await ask({ service_tier: 'priority' });
  expect(answer.status).toBe(402);
  await answer.text();
  expect((await strict.stats()).total).toBe(0);
  await served(ask({ service_tier: 'default' }));
});

describe('an unknown tier', () => {
  it.each([
    [
      'openai',
      { service_tier: 'hyper' },
      /tier \\"hyper\\" in `service_tier`\. Its price at upstream `openai`/,
    ],
    [
      'bare',
      { service_tier: 'priority' },
      /tier \\"priority\\" in `service_tier`\. Its price at upstream `bare`/,
    ],
    ['openai', { speed: 'fast' }, /tier \\"fast\\" in `speed`/],
    ['openai', { serviceTier: { type: 'x' } }, /tier \\"x\\" in `serviceTier\.type`/],
    [
      'openai',
      { service_tier: 'default', serviceTier: 'priority' },
      /`serviceTier` could not be read: it occurs twice/,
    ],
    [
      'openai',
      { Service_Tier: 'priority' },
      /`Service_Tier` could not be read: it is spelled differently/,
    ],
    [
      'openai',
      { service_tier: ['priority'] },
      /`service_tier` could not be read: it is not a string/,
    ],
  ])('at %s is refused where a budget counts: %j', async (id, fields, message) => {
    const { strict, group } = await scene();
    const text = await refused(await ask(fields, id));
    expect(text).toMatch(message);
    expect(text).toContain(`group \`${group}\` has a budget`);
    expect((await strict.stats()).total).toBe(0);
  });

  it('is refused in the dialect of the caller', async () => {
    await scene();
    const body = chatBody('a question', {
      model: 'claude-opus-4-8',
      max_tokens: 10,
      speed: 'warp',
    });
    const answer = await post('/anthropic/v1/messages', body);
    const text = await refused(answer);
    expect(JSON.parse(text)).toMatchObject({
      type: 'error',
      error: { type: expect.any(String) as string },
    });
  });

  it('is refused in a header', async () => {
    await scene();
    const headers = { 'x-amzn-bedrock-service-tier': 'priority' };
    expect(await refused(await ask({}, 'bare', headers))).toContain('x-amzn-bedrock-service-tier');
    const twice = await ask({ service_tier: 'default' }, 'bare', headers);
    expect(await refused(twice)).toContain('in addition to another field');
  });

  it('is refused where a member has the budget', async () => {
    const member = { name: 'one', upstream: 'bare', limits: BUDGET };
    const match = { upstreams: ['openai', 'bare'] };
    const keys = [{ id: 'ours', hash: await keyHash('hg_ours') }];
    const { strict } = await scene({}, { limits: {}, match, members: [member] }, {}, { keys });
    // Without its own key the call runs at a member.
    const as = (fields: object) => ask(fields, 'openai', { 'headgate-key': 'hg_ours' });
    expect(await refused(await as({ service_tier: 'priority' }))).toContain(
      'Its price at upstream `bare`',
    );
    expect((await strict.stats()).total).toBe(0);
    await served(as({ service_tier: 'default' }));
  });

  it('is looked up at the members that may run the call', async () => {
    const key = { id: 'frugal', hash: await keyHash('hg_frugal'), limits: BUDGET };
    const match = { upstreams: ['openai', 'bare'] };
    const members = [{ name: 'one', upstream: 'openai' }];
    const { group } = await scene({}, { match, members }, {}, { keys: [key] });
    await served(ask({ service_tier: 'priority' }, 'bare', { 'headgate-key': 'hg_frugal' }));
    await expect(untilCounted(group, { usd: 2 * USD })).resolves.toBeUndefined();
  });

  it('is refused where the key has the budget', async () => {
    const keys = [
      { id: 'frugal', hash: await keyHash('hg_frugal'), limits: BUDGET },
      { id: 'free', hash: await keyHash('hg_free') },
    ];
    const { strict } = await scene({}, { limits: {}, track_usage: 'always' }, {}, { keys });
    const as = (key: string) => ask({ service_tier: 'priority' }, 'bare', { 'headgate-key': key });
    expect(await refused(await as('hg_frugal'))).toContain('group `key:frugal` has a budget');
    expect((await strict.stats()).total).toBe(0);
    await served(as('hg_free'));
  });

  it('passes unchanged if no group counts cost', async () => {
    const { strict } = await scene({ keepsRequests: true }, { limits: { max_concurrency: 2 } });
    await served(ask({ service_tier: 'hyper', Service_Tier: 'x' }));
    expect((await strict.stats()).total).toBe(1);
  });
});

it.each(['gzip', 'deflate', 'br', 'zstd', 'gzip, br'])(
  'a body in %s pays for the tier that it asks for',
  async (encoding) => {
    const packed = (tier: object): Promise<Response> => {
      const text = chatBody('a question', { model: 'gpt-5', max_tokens: 10, ...tier });
      const body = pack(text, encoding) as unknown as string;
      return post(`/openai${CHAT}`, body, { headers: { 'content-encoding': encoding } });
    };
    const { group } = await scene();
    await served(packed({ service_tier: 'priority' }));
    await expect(untilCounted(group, { usd: 2 * USD })).resolves.toBeUndefined();
    await served(packed({}));
    const usd = Number((3 * USD).toFixed(9));
    await expect(untilCounted(group, { usd })).resolves.toBeUndefined();
  },
);

it('a body in an unknown encoding, whose tier cannot be read, is refused', async () => {
  const packed = (): Promise<Response> =>
    post(`/openai${CHAT}`, chatBody('a question', { model: 'gpt-5' }), {
      headers: { 'content-encoding': 'compress' },
    });
  const { group, strict } = await scene();
  expect((await packed()).headers.get('headgate-reason')).toBe('body_unreadable');
  expect((await strict.stats()).total).toBe(0);
  await expect(untilCounted(group, { usd: 0 })).resolves.toBeUndefined();
});

describe('a turn over WebSocket', () => {
  it.each([
    ['as asked for', { service_tier: 'priority' }, null, 2],
    ['as reported', { service_tier: 'priority' }, 'default', 1],
  ])('counts %s', async (_, fields, serviceTier, factor) => {
    const { group } = await scene({ serviceTier });
    const client = await connect('/openai/v1/responses');
    client.send(create('hello', fields));
    await untilEvent(client, 'response.completed');
    await expect(
      untilCounted(group, { usd: Number((USD * factor).toFixed(9)), reservedUsd: 0 }),
    ).resolves.toBeUndefined();
  });

  it.each([
    [{ service_tier: 'hyper' }, 'hyper'],
    [{ response: { service_tier: 'hyper' } }, 'response.service_tier'],
    [{ Service_Tier: 'priority' }, 'Service_Tier'],
  ])('with an unknown tier is refused: %j', async (fields, named) => {
    const { strict } = await scene();
    const client = await connect('/openai/v1/responses');
    client.send(create('hello', fields));
    const event = await untilEvent(client, 'error');
    expect(JSON.stringify(event)).toContain('price_unknown');
    expect(JSON.stringify(event)).toContain(named);
    expect((await strict.stats()).turns.total).toBe(0);
  });
});
