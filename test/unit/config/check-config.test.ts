import { describe, expect, test } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { checkConfig } from '../../../src/config/check-config.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';
import { aConfig } from '../routing/fixtures.ts';

function check(input: ConfigInput, privateUpstreams = false, jurisdiction: string | null = null) {
  const options = { privateUpstreams, jurisdiction };
  return checkConfig(aConfig(input), BUILT_IN_UPSTREAMS, options);
}

/** The errors as an operator reads them. */
function errors(input: ConfigInput, privateUpstreams = false): string[] {
  return check(input, privateUpstreams).errors.map(({ path, message }) => `${path}: ${message}`);
}

const HASH = `sha256:${'0'.repeat(64)}`;

test('an empty configuration and a plain one have neither errors nor warnings', () => {
  expect(check({})).toEqual({ errors: [], warnings: [] });
  const plain: ConfigInput = {
    upstreams: [{ id: 'my-vllm', base_url: 'https://llm.example.com', models: ['llama-*'] }],
    groups: [
      { name: 'shared', match: { models: ['gpt-4o*'] }, limits: { max_concurrency: 5 } },
      { name: 'own', match: { upstreams: ['my-*'], models: ['llama-*'] } },
      {
        name: 'url',
        match: { base_urls: ['https://api.anthropic.com/v1/'], models: ['claude-*'] },
      },
    ],
    default_upstream: 'my-vllm',
  };
  expect(check(plain)).toEqual({ errors: [], warnings: [] });
});

describe('refuses, with the path', () => {
  test.each<[string, ConfigInput, RegExp]>([
    [
      'the same upstream twice',
      { upstreams: [{ id: 'openai' }, { id: 'groq' }, { id: 'openai' }] },
      /^upstreams\[2\]\.id: is the same as upstreams\[0\]\.id/,
    ],
    ['the same group twice', { groups: [{ name: 'a' }, { name: 'a' }] }, /^groups\[1\]\.name: /],
    [
      'the same key id twice',
      {
        keys: [
          { id: 'a', hash: HASH },
          { id: 'a', hash: HASH.replace(/0$/, '1') },
        ],
      },
      /^keys\[1\]\.id: /,
    ],
    [
      'the same admin key id twice',
      {
        admin_keys: [
          { id: 'a', hash: HASH, role: 'viewer' },
          { id: 'a', hash: HASH.replace(/0$/, '1'), role: 'admin' },
        ],
      },
      /^admin_keys\[1\]\.id: is the same as admin_keys\[0\]\.id/,
    ],
    [
      'the same admin key under two ids',
      {
        admin_keys: [
          { id: 'a', hash: HASH, role: 'viewer' },
          { id: 'b', hash: HASH, role: 'admin' },
        ],
      },
      /^admin_keys\[1\]\.hash: is the same as admin_keys\[0\]\.hash/,
    ],
    [
      'an admin key that the audit log would take for the ADMIN_TOKEN',
      { admin_keys: [{ id: 'admin-token', hash: HASH, role: 'viewer' }] },
      /^admin_keys\[0\]\.id: is the name of `ADMIN_TOKEN` in the audit log/,
    ],
    [
      'the same key under two ids',
      {
        keys: [
          { id: 'a', hash: HASH },
          { id: 'b', hash: HASH },
        ],
      },
      /^keys\[1\]\.hash: /,
    ],
    [
      'a custom upstream without an address',
      { upstreams: [{ id: 'mine' }] },
      /^upstreams\[0\]\.base_url: is required, because `mine` is not a built-in upstream/,
    ],
    [
      'a group of an unknown upstream',
      { groups: [{ name: 'a', match: { upstreams: ['open*', 'opnai'] } }] },
      /^groups\[0\]\.match\.upstreams\[1\]: `opnai` is not an enabled upstream/,
    ],
    [
      'a group of a disabled upstream',
      {
        upstreams: [{ id: 'groq', enabled: false }],
        groups: [{ name: 'a', match: { upstreams: ['groq'] } }],
      },
      /^groups\[0\]\.match\.upstreams\[0\]: /,
    ],
    [
      'an automatic group of an unknown upstream',
      { auto_groups: [{ name: 'auto:openai' }, { name: 'auto:opnai' }] },
      /^auto_groups\[1\]\.name: `auto:opnai` names no enabled upstream$/,
    ],
    [
      'an automatic group of models that have none',
      { auto_groups: [{ name: 'auto:zai/glm-5.1' }, { name: 'auto:zai/glm-9' }] },
      /^auto_groups\[1\]\.name: `auto:zai\/glm-9` is not an automatic group; that upstream has `auto:zai`, .*`auto:zai\/glm-5\.1`/,
    ],
    [
      'the same automatic group twice',
      { auto_groups: [{ name: 'auto:openai' }, { name: 'auto:openai' }] },
      /^auto_groups\[1\]\.name: is the same as auto_groups\[0\]\.name/,
    ],
    ['an unknown default', { default_upstream: 'opnai' }, /^default_upstream: `opnai` is not an/],
    [
      'a partition by a header that holds a key',
      {
        groups: [
          { name: 'a', match: { upstreams: ['openai'] }, partition_by: ['header:x-api-key'] },
        ],
      },
      /^groups\[0\]\.partition_by\[0\]: .*use `api_key`/,
    ],
    [
      'tenants that would be called by their keys',
      { groups: [{ name: 'a', fairness: { by: ['header:authorization', 'agent'] } }] },
      /^groups\[0\]\.fairness\.by\[0\]: .*use `caller`/,
    ],
  ])('%s', (_, input, expected) => {
    expect(errors(input)).toEqual([expect.stringMatching(expected)]);
  });

  test.each([
    ['http://127.0.0.1:1234/v1', 'private address'],
    ['https://2130706433/', 'private address'],
    ['https://[::ffff:192.168.0.1]/', 'private address'],
    ['https://vllm.internal/', 'set via to the name of a service or VPC binding'],
    ['http://llm.example.com/v1', 'plain http'],
    ['https://me:hunter2@llm.example.com/', 'user name or password'],
    ['https://llm.example.com/?key=hunter2', 'query'],
    ['https://llm.example.com/#x', 'fragment'],
    ['https://llm.example.com/?', 'query'],
  ])('the address %s', (url, expected) => {
    const [error = '', ...more] = errors({ upstreams: [{ id: 'mine', base_url: url }] });
    expect(error).toMatch(/^upstreams\[0\]\.base_url: /);
    expect(error).toContain(expected);
    expect(error).not.toContain('hunter2');
    expect(more).toEqual([]);
  });

  test('a private address of a built-in upstream too', () => {
    expect(errors({ upstreams: [{ id: 'openai', base_url: 'http://localhost/v1' }] })).toHaveLength(
      1,
    );
  });
});

test('private addresses and plain http are allowed behind a binding and when self-hosted', () => {
  const url = 'http://10.0.0.5:8000/v1';
  expect(errors({ upstreams: [{ id: 'mine', base_url: url, via: 'VLLM' }] })).toEqual([]);
  expect(errors({ upstreams: [{ id: 'mine', base_url: url }] }, true)).toEqual([]);
  expect(errors({ upstreams: [{ id: 'mine', base_url: `${url}?a=b` }] }, true)).toHaveLength(1);
});

describe('warns', () => {
  test('of more groups than a call may belong to', () => {
    const four = [
      { name: 'tenant', match: { keys: ['team-a'] } },
      { name: 'model', match: { models: ['gpt-4o'] } },
      { name: 'provider', match: { upstreams: ['openai'] } },
      { name: 'everything' },
    ];
    expect(check({ groups: four }).warnings).toEqual([]);
    const fifth = { name: 'more', match: { models: ['gpt-*'] } };
    expect(check({ groups: [...four, fifth] }).warnings).toEqual([
      expect.stringMatching(
        /^One call may match `tenant`, `model`, `more`, `provider`, `everything`\. .* `too_many_groups`/,
      ),
    ]);
  });

  test('of an automatic group that comes on top of too many', () => {
    const groups = ['a', 'b', 'c', 'd'].map((name) => ({ name, match: { keys: ['team-*'] } }));
    expect(check({ groups }).warnings).toEqual([
      expect.stringMatching(/^One call may match `a`, `b`, `c`, `d` and its automatic group/),
    ]);
    expect(check({ groups: groups.slice(1) }).warnings).toEqual([]);
  });

  test('not of pairs, and of a crowd once, in any number of groups', () => {
    const groups = Array.from({ length: 1_000 }, (_, n) => ({
      name: `g${n}`,
      match: { models: [`m${n}`] },
    }));
    expect(check({ groups: [...groups, { name: 'all' }].slice(1) }).warnings).toEqual([]);
    const alike = groups.map(({ name }) => ({ name, match: { models: ['*'] } }));
    expect(check({ groups: alike }).warnings).toHaveLength(1);
  });

  test.each<[string, ConfigInput, RegExp]>([
    [
      'of a base URL that nothing has',
      { groups: [{ name: 'a', match: { base_urls: ['https://api.opnai.com/v1'] } }] },
      /^Group `a`: `https:\/\/api\.opnai\.com\/v1` is the base URL of no enabled upstream, so no call matches it\. Correct `match\.base_urls`\.$/,
    ],
    [
      'of a version that stands in the path twice',
      { upstreams: [{ id: 'openai', base_url: 'https://proxy.example/v1' }] },
      /^Upstream `openai`: `base_url` ends with \/v1/,
    ],
    [
      'of a secret that nobody can use',
      { upstreams: [{ id: 'openai', auth: { secret: 'UPSTREAM_OPENAI_KEY' } }] },
      /Calls to `openai` are rejected/,
    ],
    [
      'of a public IP address, which a Worker cannot call',
      { upstreams: [{ id: 'zai' }, { id: 'mine', base_url: 'https://203.0.113.7:8443/v1' }] },
      /^Upstream `mine`: upstreams\[1\]\.base_url is an IP address \(203\.0\.113\.7\).*error 1003/,
    ],
    [
      'of one of IPv6',
      { upstreams: [{ id: 'mine', base_url: 'https://[2606:4700::1111]/v1' }] },
      /^Upstream `mine`: upstreams\[0\]\.base_url is an IP address \(\[2606:4700::1111\]\)/,
    ],
    [
      'of a long wait that nothing keeps alive',
      { groups: [{ name: 'g', queue: { timeout_ms: 300_001 } }] },
      /^Group `g`: `queue\.timeout_ms` is above 300 s, and `queue\.keepalive\.after_ms` is not set/,
    ],
    [
      'of one of a lane',
      { groups: [{ name: 'g', queue: { lane_timeouts_ms: { low: 300_001 } } }] },
      /^Group `g`: a time-out in `queue\.lane_timeouts_ms` is above 300 s, and/,
    ],
    [
      'of one that is kept alive too late',
      {
        groups: [{ name: 'g', queue: { timeout_ms: 400_000, keepalive: { after_ms: 300_001 } } }],
      },
      /^Group `g`: `queue\.timeout_ms` is above 300 s, and `queue\.keepalive\.after_ms` is above that limit too/,
    ],
  ])('%s', (_, input, expected) => {
    expect(check(input).errors).toEqual([]);
    expect(check(input).warnings).toEqual([expect.stringMatching(expected)]);
  });

  test('not of an IP address behind a binding, of one where Headgate hosts itself, nor of a name with digits', () => {
    const base_url = 'https://203.0.113.7/v1';
    expect(check({ upstreams: [{ id: 'mine', base_url, via: 'VLLM' }] }).warnings).toEqual([]);
    expect(check({ upstreams: [{ id: 'mine', base_url }] }, true).warnings).toEqual([]);
    const named = { id: 'mine', base_url: 'https://203.0.113.7.example.com/v1' };
    expect(check({ upstreams: [named] }).warnings).toEqual([]);
  });

  test('not of a long wait that is kept alive, nor of one of five minutes', () => {
    const queue = { timeout_ms: 3_600_000, keepalive: { after_ms: 300_000 } };
    expect(check({ groups: [{ name: 'g', queue }] }).warnings).toEqual([]);
    const short = { timeout_ms: 300_000 };
    expect(check({ groups: [{ name: 'g', queue: short }] }).warnings).toEqual([]);
  });
});

test.each(['apac-ne', 'apac-se'] as const)('a group may be near %s', (location) => {
  expect(check({ groups: [{ name: 'g', location }] })).toEqual({ errors: [], warnings: [] });
});

test('a group that is kept where the directory is not is warned of', () => {
  const groups = [{ name: 'g', jurisdiction: 'us' as const }];
  const warning =
    /^Group `g`: its pools are stored in us, but the directory and the live feed are not\./;
  for (const elsewhere of [null, 'eu']) {
    expect(check({ groups }, false, elsewhere)).toEqual({
      errors: [],
      warnings: [expect.stringMatching(warning)],
    });
  }
  expect(check({ groups }, false, 'us').warnings).toEqual([]);
  expect(check({ groups }, true).warnings).toEqual([]);
  expect(check({ groups: [{ name: 'g' }] }, false, 'us').warnings).toEqual([]);
});

describe('names of operations', () => {
  const group = (...operations: string[]): ConfigInput => ({
    groups: [{ name: 'g', match: { operations } }],
  });
  const key = (...allow: string[]): ConfigInput => ({ keys: [{ id: 'k', hash: HASH, allow }] });
  const upstream = (...allow: string[]): ConfigInput => ({ upstreams: [{ id: 'openai', allow }] });
  const at = 'groups[0].match.operations';
  const named = (match: NonNullable<ConfigInput['groups']>[number]['match']): ConfigInput => ({
    groups: [{ name: 'g', match }],
  });

  test.each<[ConfigInput, string]>([
    [group('chta'), `${at}[0]: \`chta\` is not a known operation; did you mean \`chat\`?`],
    [
      group('chat', 'embedings'),
      `${at}[1]: \`embedings\` is not a known operation; did you mean \`embeddings\``,
    ],
    [group('batches'), `${at}[0]: \`batches\` takes no slot, so its calls are never counted; `],
    [group('files'), `${at}[0]: \`files\` takes no slot`],
    [group('count_tokens'), `${at}[0]: \`count_tokens\` takes no slot`],
    [group('batch*'), `${at}[0]: \`batch*\` takes no slot`],
    [group('zzzzzz*'), `${at}[0]: \`zzzzzz*\` is not a known operation; use one of `],
    [group('other'), `${at}[0]: \`other\` takes no slot`],
    [
      named({ paths: ['/x'], operations: ['filez'] }),
      `${at}[0]: \`filez\` is not a known operation; did you mean \`files\``,
    ],
    [
      named({ methods: ['GET'] }),
      'groups[0].match.methods: has no effect without `match.paths`; add paths, or remove this field',
    ],
    [key('file'), 'keys[0].allow[0]: `file` is not a known operation; did you mean `files`'],
    [key('files', 'administration'), 'keys[0].allow[1]: `administration` cannot be listed here'],
    [upstream('realtime'), 'upstreams[0].allow[0]: `realtime` cannot be listed here'],
    [upstream('administration'), 'upstreams[0].allow[0]: `administration` cannot be listed here'],
    [
      upstream('bathces'),
      'upstreams[0].allow[0]: `bathces` is not a known operation; did you mean `batches`',
    ],
  ])('%j is refused', (input, message) => {
    const found = errors(input);
    expect(found).toHaveLength(1);
    expect(found[0]?.slice(0, message.length)).toBe(message);
  });

  test.each<[ConfigInput]>([
    [group('chat', 'Embeddings', 'audio_*', '*', 'opaque', 'runs', 'conversations')],
    [key('files', 'batches', 'responses', 'opaque', '*')],
    [upstream('fine_tuning', 'vector_*', 'models', 'other')],
    [named({ paths: ['/v1/custom/*'], operations: ['other', 'files', 'count_tokens'] })],
    [named({ paths: ['/v1/custom/*'], methods: ['GET', 'POST'] })],
  ])('%j is taken', (input) => {
    expect(errors(input)).toEqual([]);
  });
});

test.each<[string[], string[], string | null]>([
  [['gpt-4o'], ['zai'], '`zai` is not known to have `gpt-4o`'],
  [['glm-4.6', 'gpt-4o', 'o1-*'], ['zai'], '`zai` is not known to have `gpt-4o`, `o1-*`'],
  [['claude-*'], ['openai', 'gemini'], '`gemini`, `openai` are not known to have `claude-*`'],
  [['glm-4.6'], ['zai'], null],
  [['GLM-*'], ['zai'], null],
  [['*'], ['zai'], null],
  [['zai/glm-4.6'], ['zai'], null],
  [['gpt-4o', 'claude-*'], ['openai', 'anthropic'], null],
  [['gpt-4o'], ['zai', 'openrouter'], null],
  [['gpt-4o'], [], null],
  [['gpt-oss-120b'], ['groq'], null],
])('models %j at upstreams %j: %s', (models, upstreams, warning) => {
  const { warnings } = check({ groups: [{ name: 'g', match: { models, upstreams } }] });
  const begun = warnings.map((each) => each.split(', so it may ')[0]);
  expect(begun).toEqual(warning === null ? [] : [`Group \`g\`: ${warning}`]);
});
