// The concurrency shaper is configured by flags: its pools become groups of its one upstream.
import { describe, expect, it } from 'vitest';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { importConfig } from '../../../src/config/import-config.ts';
import { convertFlags } from '../../../scripts/cli/shaper-flags.ts';

function taken(text: string) {
  const converted = convertFlags(text);
  if (!converted.ok) throw new Error(JSON.stringify(converted.errors));
  const { groups = [], upstreams = [] } = converted.config;
  return { groups, upstreams, notes: converted.notes };
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

  it('keep the first number that was said, and leave out what takes no slot', () => {
    const text = `${OPENAI} -limit "POST /chat/completions:2@a" -limit "POST /responses:3@a" -limit "GET /v1/models:1"`;
    expect(poolsOf(text)).toEqual([['a', 2, 'chat responses']]);
    expect(taken(text).notes).toEqual([
      '-limit "POST /responses:3@a": the group a has 2 already, which is kept.',
      '-limit "GET /v1/models:1": no call to /v1/models takes a slot here.',
    ]);
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
    expect(notes).toEqual(['-queue-timeout 0: an hour is the longest that a call may wait here.']);
  });

  it('of other programs in the same script are none of ours', () => {
    const script = `#!/bin/sh\nset -eu\nexport KEY=4711\nexec /usr/bin/${OPENAI} -tui`;
    expect(taken(script).notes).toEqual(['-tui is the dashboard at /admin, and headgate status.']);
  });

  it('without a counterpart are told, each once', () => {
    expect(
      taken(`# ours\n${OPENAI} -tui -bind :8080 -cb-max-penalty 2s -cb-max-penalty 3s`).notes,
    ).toEqual([
      '-tui is the dashboard at /admin, and headgate status.',
      '-bind is --port and --host of headgate serve.',
      '-cb-max-penalty has no counterpart.',
    ]);
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
    'leaves out what is no value of its flag, with a note: %s',
    (flags) => {
      expect(breakerOf(flags)).toBeUndefined();
      expect(taken(`${OPENAI} ${flags}`).notes).toEqual([
        expect.stringMatching(/: expected a (count|duration).* left out\.$/),
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
    expect(notes.join(' ')).toMatch(/: \d+ is the maximum of a group here and is used instead/);
  });

  it.each([
    '-queue-timeout soon',
    '-queue-timeout -1s',
    '-failure-hold 5',
    '-release-cooldown 5x',
    '-concurrency -3',
    '-concurrency 1.5',
    '-retry often',
  ])('are left out, and told of: %s', (flag) => {
    const { groups, notes } = taken(`${OPENAI} ${flag}`);
    expect(groups).toEqual(taken(OPENAI).groups);
    expect(notes).toEqual([expect.stringMatching(/: expected a (count|duration).* left out\.$/)]);
  });

  it('are read in every unit of Go', () => {
    const { groups } = taken(
      `${OPENAI} -failure-hold 1500us -queue-timeout 1.5h -cancel-cooldown 3ns`,
    );
    const holds = { failure_hold_ms: 2, cancel_cooldown_ms: 1 };
    // One hour is the maximum.
    expect(groups[0]).toMatchObject({ holds, queue: { timeout_ms: 3_600_000 } });
  });

  it.each(['ftp://x.test', 'wss://x.test', 'nothing'])('refuses the address %s', (base) => {
    expect(convertFlags(`ai-concurrency-shaper -upstream ${base}`)).toMatchObject({
      ok: false,
      errors: [{ path: '-upstream' }],
    });
  });

  it('never become a reserved or an empty name', () => {
    const { upstreams, groups } = taken('-upstream https://admin -limit "/:3"');
    expect(upstreams[0]?.id).toBe('shaped-admin');
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
