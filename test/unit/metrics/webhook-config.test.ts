import { describe, expect, it } from 'vitest';
import { configSchema } from '../../../src/contract/config/config.ts';
import { checkConfig } from '../../../src/config/check-config.ts';

function problems(url: string, privateUpstreams = false): string[] {
  const config = configSchema.parse({ webhook: { url, secret: 'WEBHOOK_SECRET' } });
  return checkConfig(config, [], { privateUpstreams, jurisdiction: null }).errors.map(
    ({ path, message }) => `${path} ${message}`,
  );
}

describe('the address of a receiver', () => {
  it.each([
    ['https://ops.example/hook', []],
    ['http://ops.example/hook', ['webhook.url must begin with https://']],
    [
      'https://10.1.2.3/hook',
      [
        'webhook.url leads to a private address (10.1.2.3), which Cloudflare cannot reach; use a public address',
      ],
    ],
    [
      'https://localhost/hook',
      [
        'webhook.url leads to a private address (localhost), which Cloudflare cannot reach; use a public address',
      ],
    ],
  ])('%s', (url, expected) => {
    expect(problems(url)).toEqual(expected);
    expect(problems(url, true)).toEqual([]);
  });
});

it('the address of a receiver holds no credential that fetch would refuse', () => {
  for (const isPrivate of [false, true]) {
    expect(problems('https://user:pw@ops.example/hook', isPrivate)).toEqual([
      'webhook.url must not contain a user name or password, because such a URL cannot be called; remove them',
    ]);
  }
});

it('the generic format needs a secret, and that of Slack none', () => {
  const errorsOf = (format: 'generic' | 'slack') => {
    const config = configSchema.parse({ webhook: { url: 'https://ops.example/hook', format } });
    return checkConfig(config, [], { privateUpstreams: false, jurisdiction: null }).errors;
  };
  expect(errorsOf('generic')).toMatchObject([{ path: 'webhook.secret' }]);
  expect(errorsOf('slack')).toEqual([]);
});

describe('what a configuration may not say', () => {
  it.each([
    ['a secret that is no webhook secret', { url: 'https://ops.example', secret: 'ADMIN_TOKEN' }],
    ['another protocol', { url: 'ftp://ops.example', secret: 'WEBHOOK_SECRET' }],
    ['a format that nobody takes', { url: 'https://ops.example', format: 'teams' }],
    ['no kind at all', { url: 'https://ops.example', format: 'slack', kinds: [] }],
  ])('%s', (_what, webhook) => {
    expect(configSchema.safeParse({ webhook }).success).toBe(false);
  });

  it.each([
    ['warn_at', 0],
    ['warn_at', 1.1],
    ['warn_wait_ms', 0],
  ])('%s: %s', (field, value) => {
    expect(configSchema.safeParse({ groups: [{ name: 'g', [field]: value }] }).success).toBe(false);
  });
});
