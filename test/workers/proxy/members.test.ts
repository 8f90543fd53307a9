// A call of a group with members goes out as the member's: to its URL, with its key and nobody else's, under its name
// of the model. What decides which member it is: the group.
import { afterAll, describe, expect, it } from 'vitest';
import { inPieces, pack } from '../support/packing.ts';
import { nothingLeaks, pool } from '../support/pool.ts';
import { post, sha256, type Echo } from '../spill/scene.ts';
import { env } from '../support/worker.ts';
import {
  ask,
  CHAT,
  KEY,
  keysAt,
  newScene,
  SECRETS,
  servedAt,
  type MembersScene,
} from './members-scene.ts';

afterAll(nothingLeaks);

const OWN_KEY = 'sk-of-the-caller-815';
const PROMPT = '"messages" : [ {"role":"user","content":"grüße \\u0026 \\"model\\": 1e3"} ]';
const bodyOf = (model: string) => `{ ${PROMPT},\r\n\t"model" : "${model}" , "n": 1.0 }`;

/** The first of its kind is used before the others have a turn. */
const A_THEN_B = [{ secret: 'UPSTREAM_A' }, { secret: 'UPSTREAM_B', tier: 2 }] as const;

async function echoed(
  path: string,
  body: string | Uint8Array,
  headers: Record<string, string> = KEY,
) {
  const response = await post(path, body, headers);
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.stringContaining('sha256')]);
  return { ...(JSON.parse(text) as Echo), text, member: response.headers.get('headgate-member') };
}

describe('where it goes', () => {
  it('to the upstream of the member, whichever was called', async () => {
    const at = await newScene({ members: [{ at: 'there', secret: 'UPSTREAM_A' }] });
    expect(await servedAt(at, 'call')).toBe(`${at.id('there')}:a`);
    expect([await keysAt(at.here), await keysAt(at.there)]).toEqual([[], [SECRETS.UPSTREAM_A]]);
  });

  it('under the name of the member, where it has one', async () => {
    const at = await newScene({ members: [{ name: 'eu', secret: 'UPSTREAM_A' }] });
    expect(await servedAt(at, 'call')).toBe('eu');
  });

  it('as called and with no such header, where another model has no members', async () => {
    const at = await newScene({ members: [{ at: 'there', secret: 'UPSTREAM_A' }] });
    const json = { model: 'other', messages: [] };
    expect(await servedAt(at, 'other', { json })).toBeNull();
    expect(await keysAt(at.there)).toEqual([]);
  });

  it('with the secret of the upstream, where the member has none', async () => {
    const at = await newScene({
      members: [{ at: 'there' }],
      upstreams: { there: { auth: { secret: 'UPSTREAM_B' } } },
    });
    expect(await servedAt(at, 'call')).toBe(at.id('there'));
    expect(await keysAt(at.there)).toEqual([SECRETS.UPSTREAM_B]);
  });

  it('with no key at all, where neither has one', async () => {
    const at = await newScene({ members: [{ at: 'there' }] });
    await servedAt(at, 'call');
    expect(await keysAt(at.there)).toEqual([null]);
  });
});

describe('what its caller sent as a credential stays here', () => {
  it.each<[string, Record<string, string>, string]>([
    ['cookies and keys of gateways', { cookie: `s=${OWN_KEY}`, 'helicone-auth': OWN_KEY }, ''],
    ['tokens in the query', {}, `?access_token=${OWN_KEY}`],
    [
      'the account that it asks for',
      {
        'openai-organization': OWN_KEY,
        'openai-project': OWN_KEY,
        'chatgpt-account-id': OWN_KEY,
        'anthropic-workspace-id': OWN_KEY,
        'x-goog-user-project': OWN_KEY,
      },
      `?userProject=${OWN_KEY}`,
    ],
  ])('%s', async (_, headers, query) => {
    const at = await newScene({ members: A_THEN_B, settings: { here: { echo: true } } });
    const path = at.path('here', CHAT + query);
    const { text, headers: got } = await echoed(path, bodyOf('m'), { ...KEY, ...headers });
    expect(got['authorization']).toBe(`Bearer ${SECRETS.UPSTREAM_A}`);
    for (const secret of [OWN_KEY, KEY['headgate-key'] ?? '']) expect(text).not.toContain(secret);
  });

  it('and no key of one member reaches another', async () => {
    const at = await newScene({
      members: [{ secret: 'UPSTREAM_A' }, { at: 'there', secret: 'UPSTREAM_B', tier: 2 }],
      settings: { there: { echo: true } },
    });
    await at.here.failNext('quota');
    const { text, headers } = await echoed(at.path(), bodyOf('m'));
    expect(headers['authorization']).toBe(`Bearer ${SECRETS.UPSTREAM_B}`);
    expect(text).not.toContain(SECRETS.UPSTREAM_A);
    expect(await keysAt(at.here)).toEqual([SECRETS.UPSTREAM_A]);
  });

  it.each([
    ['anthropic', '/v1/messages', 'x-api-key'],
    ['gemini', '/v1beta/models/m:generateContent', 'x-goog-api-key'],
    ['azure', '/openai/deployments/m/chat/completions', 'api-key'],
  ] as const)('and its own is where %s wants it', async (dialect, path, place) => {
    const upstreams = { here: { dialect }, there: { dialect } };
    const settings = { here: { echo: true } };
    const at = await newScene({ members: A_THEN_B, upstreams, settings });
    const { headers } = await echoed(at.path('here', path), bodyOf('m'));
    expect(headers[place]).toBe(SECRETS.UPSTREAM_A);
  });
});

describe('the name of the model', () => {
  const named = (there: string) => [
    { name: 'a', secret: 'UPSTREAM_A', models: { M: 'as-a-calls-it' } },
    { name: 'b', at: 'there' as const, secret: 'UPSTREAM_B', tier: 2, models: { m: there } },
  ];

  it('is that of each member, and nothing else of the body changes', async () => {
    const at = await newScene({
      members: named('as b "calls" it'),
      settings: { there: { echo: true } },
    });
    await at.here.failNext('quota');
    const { sha256: got, member } = await echoed(at.path(), bodyOf('m'));
    expect(member).toBe('b');
    expect(got).toBe(await sha256(bodyOf('as b \\"calls\\" it')));
    expect((await at.here.stats()).arrivals).toMatchObject([{ model: 'as-a-calls-it' }]);
  });

  it.each(['gzip', 'br', 'zstd', 'deflate, zstd'])(
    'is that of each member in a compressed body, which leaves plain: %s',
    async (encoding) => {
      const at = await newScene({ members: named('as-b'), settings: { there: { echo: true } } });
      await at.here.failNext('quota');
      const headers = { ...KEY, 'content-encoding': encoding };
      const got = await echoed(at.path(), pack(bodyOf('m'), encoding), headers);
      expect(got.sha256).toBe(await sha256(bodyOf('as-b')));
      expect(got.headers['content-encoding']).toBeUndefined();
      expect((await at.here.stats()).arrivals).toMatchObject([{ model: 'as-a-calls-it' }]);
    },
  );

  it('cannot be changed in a compressed body that is a bomb, which is refused', async () => {
    const at = await newScene({ members: named('as-b') });
    const bomb = pack(`{"model":"m","x":"${' '.repeat(20_000_000)}"}`, 'gzip');
    const response = await post(at.path(), bomb, { ...KEY, 'content-encoding': 'gzip' });
    expect([response.status, response.headers.get('headgate-reason')]).toEqual([
      400,
      'body_unreadable',
    ]);
    expect([(await at.here.stats()).total, (await at.there.stats()).total]).toEqual([0, 0]);
  });

  it('is that of the caller at a member that has no other', async () => {
    const [a, b] = named('x');
    const members = [a, { ...b, models: {} }] as ReturnType<typeof named>;
    const at = await newScene({ members, settings: { there: { echo: true } } });
    await at.here.failNext('quota');
    expect((await echoed(at.path(), bodyOf('m'))).sha256).toBe(await sha256(bodyOf('m')));
  });

  it('may be an alias of the upstream that was called', async () => {
    const at = await newScene({
      members: [{ secret: 'UPSTREAM_A', models: { m: 'there-it-is' } }],
      upstreams: { here: { aliases: { 'my-own': 'm' } } },
    });
    await servedAt(at, 'call', { json: { model: 'my-own', messages: [] } });
    expect((await at.here.stats()).arrivals).toMatchObject([{ model: 'there-it-is' }]);
  });

  it.each([
    ['gemini', '/v1beta/models/m:generateContent', '/v1beta/models/of-b:generateContent'],
    [
      'azure',
      '/openai/deployments/m/chat/completions',
      '/openai/deployments/of-b/chat/completions',
    ],
    ['bedrock', '/model/m/converse', '/model/of-b/converse'],
  ] as const)('stands in the path of %s', async (dialect, path, expected) => {
    const upstreams = { here: { dialect }, there: { dialect } };
    const at = await newScene({
      members: named('of-b'),
      upstreams,
      settings: { there: { echo: true } },
    });
    await at.here.failNext('quota');
    const got = await echoed(at.path('here', path), bodyOf('m'));
    expect([got.path, got.sha256]).toEqual([expected, await sha256(bodyOf('m'))]);
    const [first] = (await at.here.stats()).arrivals;
    expect(first?.path).toBe(expected.replace('of-b', 'as-a-calls-it'));
  });

  it('skips a member that it cannot be changed for, and is an error where there is no other', async () => {
    const ofUnknownLength = () => ({
      json: undefined,
      method: 'POST',
      body: inPieces(bodyOf('m')),
      headers: KEY,
    });
    const at = await newScene({
      members: [
        { name: 'a', secret: 'UPSTREAM_A', models: { m: 'x' } },
        { name: 'b', secret: 'UPSTREAM_B', tier: 2 },
      ],
      settings: { here: { echo: true } },
    });
    expect(await servedAt(at, 'call', ofUnknownLength())).toBe('b');
    const alone = await newScene({ members: [{ secret: 'UPSTREAM_A', models: { m: 'x' } }] });
    const { status, headers } = await ask(alone, 'call', ofUnknownLength());
    expect([status, headers.get('headgate-reason')]).toEqual([400, 'body_unreadable']);
  });
});

describe('a member that cannot take a call is none', () => {
  it('where its secret is missing', async () => {
    const at = await newScene({
      members: [{ secret: 'UPSTREAM_NOT_SET' }, { secret: 'UPSTREAM_B', tier: 2 }],
    });
    expect(await servedAt(at, 'call')).toBe(`${at.id('here')}:b`);
  });

  it('and if all are missing, its caller is told', async () => {
    const at = await newScene({ members: [{ secret: 'UPSTREAM_NOT_SET' }] });
    const { status, headers, text } = await ask(at, 'call');
    expect([status, headers.get('headgate-reason')]).toEqual([424, 'secret_missing']);
    expect(text).toContain('UPSTREAM_NOT_SET');
    expect(await pool(at.group).status()).toMatchObject({ granted_total: 0 });
  });
});

it('a call that no member has a route for is none of the group, and goes as called', async () => {
  const at = await newScene({
    members: [{ at: 'there', secret: 'UPSTREAM_A' }],
    group: { match: {} },
    upstreams: {
      here: { dialect: 'anthropic' },
      there: { dialect: 'openai', anthropic_at: null },
    },
  });
  const path = at.path('here', '/v1/messages');
  const json = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'call' }] };
  const { status, headers } = await ask(at, 'call', { path, json });
  expect([status, headers.get('headgate-member')]).toEqual([200, null]);
  expect(headers.get('headgate-groups')).toBe(`auto:${at.id('here')}`);
  expect(await keysAt(at.there)).toEqual([]);
});

it('two groups with members are too many', async () => {
  const other = {
    name: 'members-too',
    match: { models: ['m'] },
    members: [{ upstream: 'openai' }],
  };
  const at = await newScene({ members: A_THEN_B, config: { groups: [other] } });
  const { status, headers, text } = await ask(at, 'call');
  expect([status, headers.get('headgate-reason')]).toEqual([400, 'too_many_groups']);
  expect(text).toContain('several groups with members');
});

describe('a call that takes no slot', () => {
  const ofNobody = { settings: { here: { echo: true } } };

  it('goes where it is sent, with the key of the first member there', async () => {
    const members = [
      { at: 'there' as const, secret: 'UPSTREAM_C' },
      { secret: 'UPSTREAM_A', enabled: false },
      { secret: 'UPSTREAM_B' },
    ];
    const at = await newScene({ members, ...ofNobody });
    const { headers, member } = await echoed(at.path('here', '/v1/files'), '{}');
    expect([headers['authorization'], member]).toEqual([`Bearer ${SECRETS.UPSTREAM_B}`, null]);
  });

  it('with none of a group that takes no such calls', async () => {
    const at = await newScene({
      members: [{ secret: 'UPSTREAM_B' }],
      ...ofNobody,
      beside: (id) => [
        {
          name: `elsewhere-${id('there')}`,
          match: { upstreams: [id('there')] },
          members: [{ upstream: id('here'), secret: 'UPSTREAM_A' }],
        },
        {
          name: `a-${id('here')}`,
          match: { models: ['x'] },
          members: [{ upstream: id('here'), secret: 'UPSTREAM_C' }],
        },
      ],
    });
    const keyOf = async (path: string, said: Record<string, string> = {}) =>
      (await echoed(at.path('here', path), '{}', { ...KEY, ...said })).headers['authorization'];
    const named = (model: string) => keyOf('/v1/files', { 'headgate-model': model });
    expect(await named('m')).toBe(`Bearer ${SECRETS.UPSTREAM_B}`);
    expect(await named('x')).toBe(`Bearer ${SECRETS.UPSTREAM_C}`);
    expect(await named('y')).toBeUndefined();
    expect(await keyOf('/v1/files')).toBe(`Bearer ${SECRETS.UPSTREAM_C}`);
  });

  it('with that of its upstream, if it has one', async () => {
    const upstreams = { here: { auth: { secret: 'UPSTREAM_C' } } };
    const at = await newScene({ members: A_THEN_B, upstreams, ...ofNobody });
    const { headers } = await echoed(at.path('here', '/v1/files'), '{}');
    expect(headers['authorization']).toBe(`Bearer ${SECRETS.UPSTREAM_C}`);
  });

  it('but by no route that is closed', async () => {
    const at = await newScene({ members: A_THEN_B, ...ofNobody });
    const { status, headers } = await ask(at, 'call', { path: at.path('here', '/v1/batches') });
    expect([status, headers.get('headgate-reason')]).toEqual([403, 'key_forbidden']);
  });

  it('and with its own key, if it has one', async () => {
    const at = await newScene({ members: A_THEN_B, ...ofNobody });
    const own = { ...KEY, authorization: `Bearer ${OWN_KEY}` };
    const { headers } = await echoed(at.path('here', '/v1/files'), '{}', own);
    expect(headers['authorization']).toBe(`Bearer ${OWN_KEY}`);
  });
});

describe('on the unified routes', () => {
  const unified = (at: MembersScene) => servedAt(at, 'call', { path: CHAT });

  it('a model that only a group with members names is found', async () => {
    const at = await newScene({ members: [{ at: 'there', secret: 'UPSTREAM_A' }] });
    expect(await unified(at)).toBe(`${at.id('there')}:a`);
  });

  it('and one that several upstreams have', async () => {
    const models = ['m'];
    const upstreams = { here: { models }, there: { models } };
    const at = await newScene({ members: [{ at: 'there', secret: 'UPSTREAM_A' }], upstreams });
    expect(await unified(at)).toBe(`${at.id('there')}:a`);
  });
});

it('the secrets of the tests are bound', () => {
  expect(env).toMatchObject(SECRETS);
});
