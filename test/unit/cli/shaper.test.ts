// The concurrency shaper is configured by flags: its pools become groups of its one upstream.
import { describe, expect, it } from 'vitest';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { importConfig } from '../../../packages/import/src/import-config.ts';
import { convertFlags } from '../../../scripts/cli/shaper/convert-flags.ts';

function taken(text: string) {
  const converted = convertFlags(text);
  if (!converted.ok) throw new Error(JSON.stringify(converted.errors));
  const { groups = [], upstreams = [] } = converted.config;
  const omitted = converted.omitted?.map(({ path, message }) => `${path}: ${message}`) ?? [];
  return { groups, upstreams, notes: converted.notes, omitted };
}

/** Names of the groups, with their slots and operations. */
const poolsOf = (text: string) =>
  taken(text).groups.map(({ name, limits, match }) => [
    name,
    limits?.max_concurrency,
    match?.operations?.join(' ') ?? 'all',
  ]);

const OPENAI = 'ai-concurrency-shaper -upstream https://api.openai.com';

describe('pools', () => {
  it('without routes are one of four slots for all that takes a slot', () => {
    expect(poolsOf(OPENAI)).toEqual([['shaped', 4, 'all']]);
    expect(poolsOf(`${OPENAI} --concurrency=7`)).toEqual([['shaped', 7, 'all']]);
  });

  it('of routes have their numbers, share a name, or share the rest', () => {
    const limits = [
      '-limit "POST /v1/chat/completions:2"',
      "-limit 'POST /v1/embeddings:5@small'",
      '-limit "POST /moderations:@small"',
      '-limit "POST /responses"',
    ];
    expect(poolsOf(`${OPENAI} ${limits.join(' \\\n  ')} -concurrency 3`)).toEqual([
      ['v1-chat-completions', 2, 'chat'],
      ['small', 5, 'embeddings moderations'],
      ['shaped', 3, 'responses'],
    ]);
  });

  it('with the group before the number are understood as they were meant', () => {
    const limit = '-limit "POST /v1/messages@messages:3"';
    expect(poolsOf(`-upstream https://api.anthropic.com ${limit}`)).toEqual([
      ['messages', 3, 'messages'],
    ]);
  });

  it('without a number of slots, or with none, share the rest: none lets nothing through here', () => {
    expect(poolsOf(`${OPENAI} -limit "POST /v1/responses:0" -concurrency 0`)).toEqual([
      ['shaped', 4, 'responses'],
    ]);
  });

  it('have one over all of them besides', () => {
    expect(poolsOf(`${OPENAI} -global-concurrency 10`)).toContainEqual(['openai-all', 10, 'all']);
  });

  it('keep the first number that was said', () => {
    const text = `${OPENAI} -limit "POST /chat/completions:2@a" -limit "POST /responses:3@a"`;
    expect(poolsOf(text)).toEqual([['a', 2, 'chat responses']]);
    expect(taken(text).notes).toEqual([
      '-limit "POST /responses:3@a": group `a` already has 2 slots and keeps that limit.',
    ]);
  });

  it('match routes that are no known operation by their paths and methods', () => {
    const text = `${OPENAI} -limit "POST /v1/custom:2" -limit "GET /v1/models:1@reads" -limit "POST /frobnicate:3@verbs" -limit "PUT /:5@puts"`;
    expect(taken(text).groups.map(({ match }) => match)).toEqual([
      { upstreams: ['openai'], paths: ['*/v1/custom'], methods: ['POST'] },
      { upstreams: ['openai'], paths: ['*/v1/models'], methods: ['GET'] },
      { upstreams: ['openai'], paths: ['*/frobnicate', '*:frobnicate'], methods: ['POST'] },
      { upstreams: ['openai'], paths: ['*'], methods: ['PUT'] },
    ]);
    expect(taken(text).omitted).toEqual([]);
  });

  it('match all of their routes by paths if one of them is no known operation', () => {
    const text = `${OPENAI} -limit "POST /v1/messages:3@m" -limit "GET /v1/messages/batches:3@m"`;
    expect(taken(text).groups[0]?.match).toEqual({
      upstreams: ['openai'],
      paths: ['*/v1/messages', '*/v1/messages/batches'],
      methods: ['POST', 'GET'],
    });
    expect(taken(text).notes).toEqual([expect.stringContaining('routes with several methods')]);
  });

  it('over all calls, and the prefix of a provider, are said in notes', () => {
    const { notes } = taken(`${OPENAI} -global-concurrency 10 -prefix /o`);
    expect(notes).toEqual([
      expect.stringContaining('-global-concurrency 10 became group `openai-all`'),
      '-prefix /o: clients call /openai/… instead.',
    ]);
    expect(taken(`${OPENAI} -global-concurrency 0`).notes).toEqual([]);
    const zai = '-upstream https://api.z.ai/api/paas/v4 -prefix /z';
    expect(taken(zai).notes).toContain('-prefix /z: clients call /zai/api/paas/v4/… instead.');
  });

  it('beside -limit-all are listed', () => {
    const { groups, omitted } = taken(`${OPENAI} -limit-all -limit "POST /v1/rank:3"`);
    expect(groups).toHaveLength(1);
    expect(omitted).toEqual([expect.stringContaining('-limit "POST /v1/rank:3": has no slots')]);
  });

  it('take every call with -limit-all', () => {
    expect(taken(`${OPENAI} -limit-all`).groups[0]?.match).toMatchObject({
      paths: ['*'],
      methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    });
  });

  it.each([
    ['TRACE /v1/x:1', 'TRACE is not a method whose calls can take a slot'],
    ['POST /a%20b:1', 'is not a path that a group can match'],
  ])('omit a route that cannot be matched: %s', (route, message) => {
    const { omitted } = taken(`${OPENAI} -limit "${route}" -limit "POST /responses:1"`);
    expect(omitted).toEqual([`-limit "${route}": ${message}`]);
  });
});

describe('settings', () => {
  it('are taken over: waits, cool-downs, new tries', () => {
    const text = `${OPENAI} -queue-timeout 1m30s -release-cooldown 500ms -cancel-cooldown 0 -failure-hold 2s -retry -1`;
    expect(taken(text).groups[0]).toMatchObject({
      queue: { timeout_ms: 90_000 },
      holds: { release_cooldown_ms: 500, cancel_cooldown_ms: 0, failure_hold_ms: 2_000 },
      retries: { max: 10 },
    });
    expect(taken(OPENAI).groups[0]).toMatchObject({ queue: { timeout_ms: 30_000 }, holds: {} });
  });

  it('of a wait without an end become the longest that there is, and that is told', () => {
    const { groups, notes } = taken(`${OPENAI} -queue-timeout 0`);
    expect(groups[0]).toMatchObject({ queue: { timeout_ms: 3_600_000 } });
    expect(notes).toEqual([
      '-queue-timeout 0: a call may wait for 1 hour, which is the maximum of a group.',
    ]);
  });

  it('of other programs in the same script are none of ours', () => {
    const script = `#!/bin/sh\nset -eu\nexport KEY=4711\nexec /usr/bin/${OPENAI} -tui`;
    expect(taken(script).notes).toEqual(['-tui is the dashboard at /admin, and headgate status.']);
  });

  it('of the queue and of retries are taken over', () => {
    const text = `${OPENAI} -queue-depth 40 -queue-comments 20s -retry-max-body-mb 5`;
    expect(taken(text).groups[0]).toMatchObject({
      queue: { max_length: 40, keepalive: { after_ms: 20_000, every_ms: 20_000 } },
      retries: { max_body_bytes: 5_242_880 },
    });
  });

  it('of a key from elsewhere than a variable or a file are omitted', () => {
    const { omitted } = taken(`${OPENAI} -auth-source cmd:print`);
    expect(omitted).toEqual([expect.stringContaining('-auth-source: expected env:NAME')]);
  });

  it('without a counterpart are omitted, each once', () => {
    const { notes, omitted } = taken(
      `# ours\n${OPENAI} -tui -bind :8080 -cb-max-penalty 2s -cb-max-penalty 3s -unheard-of x -constructor x`,
    );
    expect(notes).toEqual([
      '-tui is the dashboard at /admin, and headgate status.',
      '-bind is --port and --host of headgate serve.',
    ]);
    expect(omitted).toEqual([
      '-cb-max-penalty: has no counterpart: each failure holds its slot for the same time (holds.failure_hold_ms)',
      '-unheard-of: has no counterpart',
      '-constructor: has no counterpart',
    ]);
  });
});

describe('the address', () => {
  it.each([
    ['https://api.openai.com', 'openai', []],
    ['https://api.openai.com/v1', 'openai', []],
    ['https://openrouter.ai/api/v1/', 'openrouter', []],
    ['https://api.z.ai/api/coding/paas/v4', 'zai-coding', []],
    [
      'https://api.openai.com/proxy/eu',
      'api-openai-com',
      [{ id: 'api-openai-com', base_url: 'https://api.openai.com/proxy/eu', dialect: 'openai' }],
    ],
    [
      'https://api.anthropic.com/eu',
      'api-anthropic-com',
      [{ id: 'api-anthropic-com', base_url: 'https://api.anthropic.com/eu', dialect: 'anthropic' }],
    ],
  ])('keeps its path: %s', (base, id, upstreams) => {
    const made = taken(`-upstream ${base}`);
    expect(made.upstreams).toEqual(upstreams);
    expect(made.groups[0]?.match?.upstreams).toEqual([id]);
  });

  it('of an unknown host speaks as its routes do', () => {
    const text = '-upstream https://llm.example.com -limit "POST /v1/messages:2"';
    expect(taken(text).upstreams[0]?.dialect).toBe('anthropic');
  });
});

describe('a command line', () => {
  it('has sections of several upstreams, whose groups have their names', () => {
    const { groups, upstreams, notes } = taken(
      '-bind :9 --provider=a -upstream https://api.openai.com -auth-source env:MY_KEY ' +
        '--provider=b -upstream https://api.anthropic.com -prefix /b -concurrency 2',
    );
    expect(groups.map(({ name, match, limits }) => [name, match?.upstreams, limits])).toEqual([
      ['a-shaped', ['openai'], { max_concurrency: 4 }],
      ['b-shaped', ['anthropic'], { max_concurrency: 2 }],
    ]);
    expect(upstreams).toEqual([{ id: 'openai', auth: { secret: 'UPSTREAM_MY_KEY' } }]);
    expect(notes).toContain(
      'Set the secret UPSTREAM_MY_KEY to the value of the environment variable MY_KEY.',
    );
  });

  it('imports the other sections if one has no upstream', () => {
    const { groups, omitted } = taken('--provider=a --provider=b -upstream https://api.openai.com');
    expect(groups).toHaveLength(1);
    expect(omitted).toEqual([expect.stringContaining('in --provider=a')]);
  });

  it.each([
    [
      'a list on one line',
      'command: ["-upstream", "https://api.openai.com", "-limit", "POST /v1/responses:2"]',
    ],
    [
      'a list',
      'command:\n  - -upstream\n  - https://api.openai.com\n  - -limit\n  - "POST /v1/responses:2"',
    ],
    [
      'a unit',
      '[Service]\nExecStart=/usr/bin/ai-concurrency-shaper -upstream https://api.openai.com -limit "POST /v1/responses:2"',
    ],
  ])('stands in a file of a container or a service: %s', (_what, text) => {
    expect(poolsOf(text)).toEqual([['v1-responses', 2, 'responses']]);
  });
});

describe('the breaker', () => {
  const breakerOf = (flags: string) => taken(`${OPENAI} ${flags}`).groups[0]?.breaker;

  it('has the defaults of a group without flags', () => {
    expect(breakerOf('-circuit-breaker=true')).toBe(undefined);
    expect(taken(`${OPENAI} -circuit-breaker`).notes).toEqual([]);
  });

  it('has the same window, hold and number of calls', () => {
    const flags = '-cb-threshold 2 -cb-window 10s -cb-open-timeout 5s -cb-max-open-timeout 2m';
    const breaker = { min_calls: 2, window_ms: 10_000, hold_ms: 5_000, hold_max_ms: 120_000 };
    expect(breakerOf(flags)).toEqual(breaker);
    expect(taken(`${OPENAI} ${flags}`).notes).toEqual([
      '-cb-threshold 2: the breaker of a group opens when half of at least 2 calls within the window failed (breaker.threshold, breaker.min_calls).',
    ]);
  });

  it.each([
    ['10000ms', 10_000],
    ['0.5m', 30_000],
    ['1m30s', 90_000],
    ['1h', 3_600_000],
    ['1500000us', 1_500],
    ['1500000µs', 1_500],
    ['2000000000ns', 2_000],
  ])('reads its times in every unit: %s', (time, ms) => {
    const times = { window_ms: ms, hold_ms: ms, hold_max_ms: ms };
    const flags = `-cb-window ${time} --cb-open-timeout=${time} -cb-max-open-timeout=${time}`;
    expect(breakerOf(flags)).toEqual(times);
  });

  it.each([
    ['-cb-threshold 3', { min_calls: 3 }],
    ['-cb-window 20s', { window_ms: 20_000 }],
    ['-cb-open-timeout 7s', { hold_ms: 7_000 }],
    ['-cb-max-open-timeout 3m', { hold_max_ms: 180_000 }],
    ['-circuit-breaker -cb-threshold 3', { min_calls: 3 }],
    ['-circuit-breaker=false -cb-threshold 3', { threshold: null, min_calls: 3 }],
  ])('keeps the defaults of a group for flags that are missing: %s', (flags, breaker) => {
    expect(breakerOf(flags)).toEqual(breaker);
  });

  it.each(['-cb-threshold few', '-cb-threshold -1', '-cb-window 10', '-cb-open-timeout -5s'])(
    'leaves out what is no value of its flag, and lists it: %s',
    (flags) => {
      expect(breakerOf(flags)).toBeUndefined();
      expect(taken(`${OPENAI} ${flags}`).omitted).toEqual([
        expect.stringMatching(/: expected a (count|duration)/),
      ]);
    },
  );

  it.each(['false', 'f', '0'])('is disabled by %s', (off) => {
    expect(breakerOf(`-circuit-breaker=${off}`)).toEqual({ threshold: null });
  });

  it('holds a slot after a failure for its penalty, or for the failure hold without one', () => {
    const holdsOf = (flags: string) => taken(`${OPENAI} ${flags}`).groups[0]?.holds;
    expect(holdsOf('-cb-penalty 5s -failure-hold 1s')).toEqual({ failure_hold_ms: 5_000 });
    expect(holdsOf('-cb-penalty 0 -failure-hold 1s')).toEqual({ failure_hold_ms: 1_000 });
  });

  it('replaces invalid values by the nearest ones, with a note', () => {
    const flags = `-cb-threshold 5000 -cb-window 1ms -cb-open-timeout 90h -cb-max-open-timeout 1ms`;
    const { groups, notes } = taken(`${OPENAI} ${flags}`);
    const breaker = { min_calls: 100, window_ms: 1_000, hold_ms: 3_600_000, hold_max_ms: 100 };
    expect(groups[0]?.breaker).toEqual(breaker);
    expect(notes).toHaveLength(5);
    expect(groupSchema.parse(groups[0]).breaker).toMatchObject(breaker);
  });
});

it('an upstream that is not built in is made', () => {
  const { upstreams, groups } = taken('-upstream https://llm.example.com/api');
  expect(upstreams).toEqual([
    { id: 'llm-example-com', base_url: 'https://llm.example.com/api', dialect: 'openai' },
  ]);
  expect(groups[0]?.match?.upstreams).toEqual(['llm-example-com']);
});

it.each(['', 'nothing of it', '-upstream', '-upstream nowhere', '-upstream=""'])(
  'what is no command line of it is refused: %j',
  (text) => {
    expect(convertFlags(text)).toMatchObject({ ok: false, errors: [{ path: '-upstream' }] });
  },
);

describe('values that Headgate does not accept', () => {
  it.each([
    ['-concurrency 1000000', { limits: { max_concurrency: 100_000 } }],
    ['-limit "/v1/responses:99999999"', { limits: { max_concurrency: 100_000 } }],
    ['-queue-timeout 2h', { queue: { timeout_ms: 3_600_000 } }],
    ['-release-cooldown 90s', { holds: { release_cooldown_ms: 60_000 } }],
    ['-cancel-cooldown 1h30m', { holds: { cancel_cooldown_ms: 60_000 } }],
    ['-failure-hold=5m', { holds: { failure_hold_ms: 60_000 } }],
    ['-retry 99', { retries: { max: 10 } }],
  ])('become the maximum, and are told of: %s', (flag, group) => {
    const { groups, notes } = taken(`${OPENAI} ${flag}`);
    expect(groups[0]).toMatchObject(group);
    expect(notes.join(' ')).toMatch(/: \d+ is the maximum of a group and is used instead/);
  });

  it.each([
    '-queue-timeout soon',
    '-queue-timeout -1s',
    '-failure-hold 5',
    '-release-cooldown 5x',
    '-concurrency -3',
    '-concurrency 1.5',
    '-retry often',
  ])('are left out and listed, so that the exit code says it: %s', (flag) => {
    const { groups, omitted } = taken(`${OPENAI} ${flag}`);
    expect(groups).toEqual(taken(OPENAI).groups);
    expect(omitted).toEqual([expect.stringMatching(/: expected a (count|duration)/)]);
  });

  it('are read in every unit of Go', () => {
    const { groups } = taken(
      `${OPENAI} -failure-hold 1500us -queue-timeout 1.5h -cancel-cooldown 3ns`,
    );
    const holds = { failure_hold_ms: 2, cancel_cooldown_ms: 1 };
    // One hour is the maximum.
    expect(groups[0]).toMatchObject({ holds, queue: { timeout_ms: 3_600_000 } });
  });

  it.each(['ftp://x.test', 'wss://x.test', 'nothing', 'https://a:b@x.test', 'https://x.test?k=1'])(
    'refuses the address %s',
    (base) => {
      expect(convertFlags(`ai-concurrency-shaper -upstream ${base}`)).toMatchObject({
        ok: false,
        errors: [{ path: '-upstream' }],
      });
    },
  );

  it('never become a reserved or an empty name', () => {
    const { upstreams, groups } = taken('-upstream https://admin -limit "/:3"');
    expect(upstreams[0]?.id).toBe('at-admin');
    expect(groups.map(({ name }) => name)).not.toContain('');
  });

  it('always become a document that an import accepts', () => {
    const odd = ['0', '-1', '1.5', 'x', '7', '99999999', '5m', '2h', '-1s', '0.5ms', '61s'];
    const counts = 'concurrency global-concurrency retry';
    const durations = 'queue-timeout release-cooldown cancel-cooldown failure-hold';
    const names = `${counts} ${durations}`.split(' ');
    for (const base of [
      'https://api.openai.com',
      'http://localhost:9',
      'https://v1',
      'https://[::1]',
    ]) {
      for (const value of odd) {
        const flags = names.map((name) => `-${name} ${value}`).join(' ');
        const converted = convertFlags(
          `-upstream ${base} -limit "/v1/messages:${value}@A b" ${flags}`,
        );
        const imported = converted.ok ? importConfig(converted.config) : converted;
        expect([base, value, imported]).toMatchObject([base, value, { ok: true }]);
      }
    }
  });
});
