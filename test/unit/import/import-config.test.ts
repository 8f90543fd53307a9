import { describe, expect, it } from 'vitest';
import { importConfig, importPruned } from '../../../packages/import/src/import-config.ts';
import { exportConfig } from '../../../src/config/own-config.ts';
import { parseConfigText } from '../../../src/config/parse-text.ts';

function errorsOf(document: unknown): { path: string; message: string }[] {
  const imported = importConfig(document);
  return imported.ok ? [] : imported.errors;
}

function configOf(document: unknown) {
  const imported = importConfig(document);
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  return imported;
}

describe('a document of our own shape', () => {
  it('gets every default', () => {
    const { config, groupsOnly } = configOf({ groups: [{ name: 'a' }] });
    expect(config.groups[0]?.limits.max_concurrency).toBeNull();
    expect(config.groups[0]?.queue).toEqual({
      max_length: 1_000,
      timeout_ms: 240_000,
      lane_timeouts_ms: { high: null, normal: null, low: null },
      max_length_each: null,
      max_length_each_agent: null,
      age_credit_ms: 120_000,
      lane_shares: { normal: 0.1, low: 0.05 },
      lane_rules: [],
      lane_default: 'normal',
      lane_max: null,
      keepalive: { after_ms: null, every_ms: 15_000 },
      nested: 'reject',
    });
    expect(config.groups[0]?.fairness).toEqual({
      by: ['caller', 'agent'],
      max_concurrency_each: null,
      max_concurrency_each_agent: null,
      weights: {},
      reserved: {},
    });
    expect(config.groups[0]).toMatchObject({ draining: false, dry_run: false });
    expect(config.groups[0]?.limits.max_weight).toBe(1);
    expect(config.default_upstream).toBeNull();
    expect(groupsOnly).toBe(false);
  });

  it.each(['json', 'yaml'] as const)('survives an export as %s', (format) => {
    const { config } = configOf({
      upstreams: [{ id: 'mine', base_url: 'https://llm.example.com', aliases: { 'prod:7': 'm' } }],
      groups: [{ name: 'a', match: { models: ['no', '1.0', 'a*', '~'] }, location: 'weur' }],
    });
    const text = exportConfig(config, format);
    expect(configOf(parseConfigText(text, `application/${format}`)).config).toEqual(config);
  });

  const group = (fields: object) => ({ groups: [{ name: 'a', ...fields }] });
  it.each([
    [
      group({ limits: { max_concurrency: '5' } }),
      'groups[0].limits.max_concurrency',
      'expected a whole number, got the text "5"',
    ],
    [group({ limits: { rpm: -1 } }), 'groups[0].limits.rpm', 'expected at least 0, got -1'],
    [group({ limits: { tpm: 1.5 } }), 'groups[0].limits.tpm', 'expected a whole number, got 1.5'],
    [
      group({ limits: { burst: '0.5' } }),
      'groups[0].limits.burst',
      'expected a number, got the text "0.5"',
    ],
    [
      group({ fairness: { weights: { '': 2 } } }),
      'groups[0].fairness.weights[""]',
      '"" cannot be a name here: expected at least 1 character',
    ],
    [
      group({ fairness: { reserved: { a: 'two' } } }),
      'groups[0].fairness.reserved.a',
      'expected a whole number, got a text of 3 characters',
    ],
    [
      group({ limits: { max_concurency: 5 } }),
      'groups[0].limits.max_concurency',
      'unknown field `max_concurency`; did you mean `max_concurrency`?',
    ],
    [
      group({ limits: { maxConcurrency: 5 } }),
      'groups[0].limits.maxConcurrency',
      'unknown field `maxConcurrency`; did you mean `max_concurrency`?',
    ],
    [
      group({ match: { colour: ['red'] } }),
      'groups[0].match.colour',
      'unknown field `colour`; known fields: `models`, `upstreams`, `base_urls`, `keys`, `operations`, `paths`, `methods`, `references`',
    ],
    [group({ match: null }), 'groups[0].match', 'expected an object, got null'],
    [
      group({ match: { models: 'gpt-4o' } }),
      'groups[0].match.models',
      'expected a list, got a text of 6 characters',
    ],
    [group({ paused: 'yes' }), 'groups[0].paused', 'expected true or false, got the text "yes"'],
    [
      group({ on_unavailable: 'pass' }),
      'groups[0].on_unavailable',
      'expected "reject" or an object, got a text of 4 characters',
    ],
    [
      group({ on_unavailable: { pass_with_limit_each: 0 } }),
      'groups[0].on_unavailable.pass_with_limit_each',
      'expected at least 1, got 0',
    ],
    [
      group({ holds: { cancel_cooldown_ms: 70_000 } }),
      'groups[0].holds.cancel_cooldown_ms',
      'expected at most 60000, got 70000',
    ],
    [
      group({ partition_by: ['key'] }),
      'groups[0].partition_by[0]',
      'expected api_key, caller, model, upstream, base_url or header:<name>, got the text "key"',
    ],
    [{ groups: [{}] }, 'groups[0].name', 'is missing: expected text'],
    [{ group: [] }, 'group', 'unknown field `group`; did you mean `groups`?'],
    [
      { upstreams: [{ id: 'openai', auth: { secrt: 'UPSTREAM_A' } }] },
      'upstreams[0].auth.secrt',
      'unknown field `secrt`; did you mean `secret`?',
    ],
    [
      { upstreams: [{ id: 'a', base_url: 'ftp://host' }] },
      'upstreams[0].base_url',
      'expected a URL that begins with http:// or https://, got a text of 10 characters',
    ],
    [
      { upstreams: [{ id: 'admin' }] },
      'upstreams[0].id',
      'may not be one of v1, admin, status, metrics, healthz, leases, tickets, webhooks',
    ],
    [
      { upstreams: [{ id: 'a', aliases: { 'x y': 1 } }] },
      'upstreams[0].aliases["x y"]',
      'expected text, got 1',
    ],
    [null, '', 'expected an object, got null'],
    ['groups', '', 'expected an object, got a text of 6 characters'],
  ])('is refused with the path of what is wrong: %j', (document, path, message) => {
    expect(errorsOf(document)).toContainEqual({ path, message });
  });

  it('is refused with everything that is wrong, not the first thing only', () => {
    const errors = errorsOf({ groups: [{ name: 'A' }, { name: 'b', limit: {} }], key: [] });
    expect(errors.map(({ path }) => path)).toEqual(['groups[0].name', 'groups[1].limit', 'key']);
  });

  it('is refused in a time that grows with its mistakes', () => {
    const aliases = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`a${at}`, at]));
    const msOf = (count: number): number => {
      const document = { upstreams: [{ id: 'x', aliases: aliases(count) }] };
      const started = process.cpuUsage();
      expect(errorsOf(document)).toHaveLength(count);
      // Of this process, whatever else the machine does.
      return process.cpuUsage(started).user / 1_000;
    };
    msOf(500);
    const [few, ...many] = [500, 10_000, 10_000].map(msOf);
    // With the document gone through anew for each of them, it would be four hundred times.
    expect(Math.min(...many)).toBeLessThan(120 * Math.max(5, few ?? 0));
  });

  it.each([
    { upstreams: [{ id: 'openai', auth: { secret: 'sk-live-4711' } }] },
    { keys: [{ id: 'hg_4711', hash: 'sk-live-4711' }] },
    { groups: [{ name: 'a', match: { keys: ['sk-live-4711'] } }] },
    { groups: [{ name: 'a', location: { key: 'sk-live-4711' }, queue: 'sk-live-4711' }] },
  ])('is refused without repeating a key that stands in the wrong place: %j', (document) => {
    const errors = errorsOf(document);
    expect(errors).not.toEqual([]);
    expect(JSON.stringify(errors)).not.toContain('4711');
  });
});

describe('a foreign document', () => {
  it('of concurrency groups becomes groups', () => {
    const { config, notes, groupsOnly } = configOf({
      concurrency_groups: [
        { name: 'shared', max_concurrency: 5, models: ['gpt-4o', 'o1-*'] },
        { name: 'My Gateway', max_concurrency: 2, providers: ['z.ai', 'Google', 'openrouter'] },
      ],
    });
    expect(config.groups.map(({ name, limits, match }) => [name, limits, match])).toMatchObject([
      ['shared', { max_concurrency: 5 }, { models: ['gpt-4o', 'o1-*'], upstreams: [] }],
      ['my-gateway', { max_concurrency: 2 }, { upstreams: ['zai', 'gemini', 'openrouter'] }],
    ]);
    expect(notes).toEqual([
      '`My Gateway` became the group `my-gateway`.',
      'Provider `z.ai` became upstream `zai`.',
      'Provider `Google` became upstream `gemini`.',
    ]);
    expect(groupsOnly).toBe(true);
  });

  const limit = { model: 'gpt-4', rate_limit: { rpm: 50, tpm: 10_000 } };
  it.each([
    ['one object', limit],
    ['a list', [limit]],
    ['a list under models', { models: [limit] }],
  ])('of rate limits becomes a group per model: %s', (_title, document) => {
    const { config, groupsOnly } = configOf(document);
    expect(config.groups).toHaveLength(1);
    expect(config.groups[0]).toMatchObject({
      name: 'gpt-4',
      match: { models: ['gpt-4'] },
      limits: { max_concurrency: null, rpm: 50, tpm: 10_000 },
    });
    expect(groupsOnly).toBe(true);
  });

  it('of rate limits makes a group name of any model name', () => {
    const names = ['openai/GPT-4o', '@cf/meta/llama', 'ft:gpt:acme::1'].map(
      (model) => configOf({ model, rate_limit: { rpm: 1 } }).config.groups[0]?.name,
    );
    expect(names).toEqual(['openai-gpt-4o', 'cf-meta-llama', 'ft-gpt-acme-1']);
  });

  it.each([
    [
      { concurrency_groups: [], groups: [] },
      'concurrency_groups',
      'cannot be combined with `groups`, because a document has one shape; write its groups under `groups`',
    ],
    [
      { concurrency_groups: [], models: [] },
      'concurrency_groups',
      'cannot be combined with `models`; import one shape at a time',
    ],
    [
      { concurrency_groups: [{ name: 'a', max: 3 }] },
      'concurrency_groups[0].max_concurrency',
      'is missing: expected a whole number',
    ],
    [
      { concurrency_groups: [{ name: 'a', max_concurrency: 3, provider: ['b'] }] },
      'concurrency_groups[0].provider',
      'unknown field `provider`; did you mean `providers`?',
    ],
    [
      { models: [{ model: 'a', rate_limit: { rpm: '50' } }] },
      'models[0].rate_limit.rpm',
      'expected a whole number, got the text "50"',
    ],
    [
      [{ model: 'a', rate_limit: {} }, { model: 'b' }],
      '[1].rate_limit',
      'is missing: expected an object',
    ],
    [
      [
        { model: 'a/b', rate_limit: {} },
        { model: 'A-b', rate_limit: {} },
      ],
      '[1].model',
      'would get the group name `a-b`, which `a/b` has; rename one of them',
    ],
    [
      { model: '***', rate_limit: {} },
      'model',
      'has no letter or digit for the name of a group; rename it',
    ],
    [{ rate_limit: {} }, 'model', 'is missing: expected text'],
  ])('is refused with its own path: %j', (document, path, message) => {
    expect(errorsOf(document)).toContainEqual({ path, message });
  });
});

describe('the name of a JSON schema', () => {
  it('is accepted at the top of our own shape, and is not kept', () => {
    const groups = [{ name: 'a', limits: { max_concurrency: 2 } }];
    const imported = importConfig({ $schema: 'https://example.com/headgate.json', groups });
    expect(imported).toMatchObject({ ok: true, config: { groups } });
    expect(imported.ok && '$schema' in imported.config).toBe(false);
  });

  it('is dropped from the shapes of other systems, too', () => {
    const imported = importConfig({
      $schema: 'https://example.com/other.json',
      concurrency_groups: [{ name: 'a', max_concurrency: 1, models: ['gpt-5'] }],
    });
    expect(imported).toMatchObject({ ok: true, omitted: [] });
  });

  it.each([{ $schema: 5 }, { groups: [{ name: 'a', $schema: 'https://example.com/x.json' }] }])(
    'is an unknown field anywhere else: %j',
    (document) => {
      const imported = importConfig(document);
      expect(imported.ok ? [] : imported.errors.map(({ message }) => message)).toEqual([
        expect.stringContaining('unknown field `$schema`'),
      ]);
    },
  );
});

describe('keys that begin with x-', () => {
  it('hold values for aliases at the top, and are not kept', () => {
    const text = `
      x-small: &small { limits: { max_concurrency: 2 }, queue: { timeout_ms: 5000 } }
      groups:
        - { <<: *small, name: a }
        - { <<: *small, name: b, queue: { max_length: 3 } }`;
    const imported = importConfig(parseConfigText(text, 'application/yaml'));
    expect(imported).toMatchObject({
      ok: true,
      config: {
        groups: [
          { name: 'a', limits: { max_concurrency: 2 }, queue: { timeout_ms: 5_000 } },
          { name: 'b', limits: { max_concurrency: 2 }, queue: { max_length: 3 } },
        ],
      },
    });
    expect(imported.ok && 'x-small' in imported.config).toBe(false);
  });

  it('are unknown fields anywhere else', () => {
    const imported = importConfig({ groups: [{ name: 'a', 'x-note': 'b' }] });
    expect(imported.ok ? [] : imported.errors.map(({ message }) => message)).toEqual([
      expect.stringContaining('unknown field `x-note`'),
    ]);
  });
});

describe('a part of a foreign document that cannot be imported', () => {
  const group = (name: string, max_concurrency: number) => ({
    name,
    max_concurrency,
    models: [name],
  });

  it('is left out with its path, and the rest is imported', () => {
    const own = importConfig({ concurrency_groups: [group('a', 1), group('b', 2)] });
    if (!own.ok) throw new Error(JSON.stringify(own.errors));
    const { config, notes } = own;
    const settled = importPruned(
      { config, notes, omitted: [], pathOf: (path) => path.replace('groups', 'entries') },
      ({ groups }) =>
        groups.flatMap(({ name }, at) =>
          name === 'a' ? [{ path: `groups[${at}].match`, message: 'is not possible' }] : [],
        ),
    );
    expect(settled).toMatchObject({
      ok: true,
      config: { groups: [{ name: 'b' }] },
      omitted: [{ path: 'entries[0].match', message: 'is not possible' }],
    });
    expect(settled.ok && settled.pathOf?.('groups[0].limits')).toBe('entries[1].limits');
  });
});
