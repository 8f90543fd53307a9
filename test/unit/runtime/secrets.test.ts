import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  cleanSecret,
  howToSet,
  membersWithoutSecret,
  readSecret,
  refusedSecrets,
  secretFault,
  settingHint,
  whereIsAdminToken,
  withoutSecret,
} from '../../../src/runtime/secrets.ts';

const DEPLOYED = 'https://headgate.example.workers.dev/admin/api/session';

test('a secret is set with wrangler on Cloudflare, and in the environment where Headgate hosts itself', () => {
  expect(howToSet({}, 'UPSTREAM_KEY', DEPLOYED)).toBe('npx wrangler secret put UPSTREAM_KEY');
  const self = { BOOT_ID: 'b1' };
  expect(howToSet(self, 'UPSTREAM_KEY', 'http://127.0.0.1:8787/')).toBe(
    "export UPSTREAM_KEY='…' in the environment that starts Headgate, then restart it",
  );
  expect(settingHint({}, 'UPSTREAM_KEY', DEPLOYED).command).toBe(
    'npx wrangler secret put UPSTREAM_KEY',
  );
  expect(settingHint(self, 'UPSTREAM_KEY', DEPLOYED)).toEqual({
    command: "export UPSTREAM_KEY='…'",
    afterwards: 'Set it in the environment that starts Headgate, then restart Headgate.',
  });
});

test.each([
  'http://localhost:8787/',
  'http://127.0.0.1:8787/admin/api/session',
  'http://[::1]:8787/admin',
])('at %s, where wrangler dev serves, a secret is set in .dev.vars', (url) => {
  expect(settingHint({}, 'ADMIN_TOKEN', url).command).toBe(`echo "ADMIN_TOKEN='…'" >> .dev.vars`);
  expect(howToSet({}, 'ADMIN_TOKEN', url)).toContain('then restart npm run dev or wrangler dev');
  expect(whereIsAdminToken({}, url)).toContain('.dev.vars');
});

test('a host that only begins like a local one is deployed', () => {
  expect(howToSet({}, 'ADMIN_TOKEN', 'https://localhost.example.com/')).toContain(
    'wrangler secret',
  );
});

test('the ADMIN_TOKEN that is set is found where Headgate runs', () => {
  expect(whereIsAdminToken({}, DEPLOYED)).toContain('npx wrangler secret put ADMIN_TOKEN');
  expect(whereIsAdminToken({ BOOT_ID: 'b1' }, DEPLOYED)).toContain('headgate serve --show-token');
});

test('a secret that is empty is not set', () => {
  const env = { UPSTREAM_KEY: 'sk-1', WEBHOOK_SECRET: '', GROUPS: {} };
  expect(readSecret(env, 'UPSTREAM_KEY')).toBe('sk-1');
  for (const name of ['WEBHOOK_SECRET', 'ADMIN_TOKEN', 'GROUPS']) {
    expect(readSecret(env, name)).toBeNull();
  }
});

const REFUSED = 'has white space or control characters inside';

describe('a secret', () => {
  test.each([
    ['sk-1\n', 'a line break of echo'],
    ['sk-1\r\n', 'one of Windows'],
    ['  sk-1\t', 'spaces and tabs'],
    ['\ufeffsk-1', 'the mark at the beginning of a file'],
    ['sk-1\u00a0', 'a space of a web page'],
    ['\u200bsk-1\u200b', 'characters of no width'],
    ['\0sk-1\u0007', 'control characters'],
  ])('loses at its ends: %j, %s', (given) => {
    expect(cleanSecret(given)).toEqual({ value: 'sk-1', fault: null });
  });

  test.each([
    'sk-1\nsk-2',
    'sk-1 sk-2',
    'sk\t1',
    'sk\u00001',
    'sk\u200b1',
    'sk\u00a01',
    'a\u2028b',
  ])('is refused with white space or control characters inside: %j', (given) => {
    expect(cleanSecret(given)).toEqual({ value: null, fault: REFUSED });
    expect(readSecret({ UPSTREAM_A: `${given}\n` }, 'UPSTREAM_A')).toBeNull();
    expect(secretFault({ UPSTREAM_A: given }, 'UPSTREAM_A')).toBe(REFUSED);
  });

  test.each(['', ' ', '\r\n', undefined, null, {}])('is not set: %j', (given) => {
    expect(cleanSecret(given)).toEqual({ value: null, fault: 'is not set' });
  });

  test.each(['pässwört', 'p@ss"w\'o\\rd', '密码'])('keeps other characters: %s', (given) => {
    expect(readSecret({ ADMIN_TOKEN: given }, 'ADMIN_TOKEN')).toBe(given);
  });
});

test('refused secrets are listed by name, whatever they are for, and never by value', () => {
  const names = ['ADMIN_TOKEN', 'METRICS_TOKEN', 'UPSTREAM_A', 'WEBHOOK_B'];
  const env = Object.fromEntries([...names, 'JURISDICTION'].map((name) => [name, 'to\nken']));
  const listed = refusedSecrets({ ...env, UPSTREAM_OK: 'sk-1\n', GROUPS: {} });
  expect(listed).toEqual(names.map((secret) => ({ secret, fault: REFUSED })));
});

test('upstreams and members say why they have no secret', () => {
  const env = { UPSTREAM_A: 'a b' };
  const upstream = (id: string, secret: string) => ({ id, secret }) as never;
  expect(withoutSecret(env, [upstream('a', 'UPSTREAM_A'), upstream('b', 'UPSTREAM_B')])).toEqual([
    { id: 'a', secret: 'UPSTREAM_A', fault: REFUSED },
    { id: 'b', secret: 'UPSTREAM_B', fault: 'is not set' },
  ]);
  const members = [{ upstream: 'a', secret: 'UPSTREAM_A', enabled: true }];
  expect(membersWithoutSecret(env, [{ name: 'g', members }] as never)).toMatchObject([
    { group: 'g', secret: 'UPSTREAM_A', fault: REFUSED },
  ]);
});

/** Names of `Env` that hold no secret. A new name fails the test below until it is in one of the two lists. */
const NO_SECRETS = [
  'ACCESS_AUD',
  'ACCESS_ROLE',
  'ACCESS_TEAM_DOMAIN',
  'ALLOWED_HOSTS',
  'BODY_MEMORY_MIB',
  'BOOT_ID',
  'DIRECTORY_LOCATION',
  'JURISDICTION',
  'PRIVATE_UPSTREAMS',
];
const SECRETS = ['ADMIN_TOKEN', 'METRICS_TOKEN'];

/** Lines that read a secret of the environment without `readSecret`, `cleanSecret` and their like. */
const NAME = String.raw`(?:[A-Z]+_)*(?:TOKEN|SECRET|KEY|PASSWORD)\b`;
const DIRECT = new RegExp(
  String.raw`\benv(?:ironment)?\??\.${NAME}|\benv(?:ironment)?\)?\[(?:'${NAME}|\w*[Nn]ame\])|\b${NAME}[^=]*\} = (?:this\.)?#?env\b`,
);

/** They clean what they read in the same line or the next, or hide it. */
const CLEANED = /cleanSecret|options\.adminToken|env\[name\]\?\.trim\(\)|\[name\];$/;

const sources = (folder: string): [path: string, text: string][] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => [join(folder, path), readFileSync(join(folder, path), 'utf8')]);

test('every secret of the environment is read by these functions', () => {
  const found = readFileSync('src/env.ts', 'utf8').matchAll(/readonly ([A-Z_]+)\?: string;/g);
  const names = [...found].map(([, name = '']) => name);
  expect(names.toSorted()).toEqual([...NO_SECRETS, ...SECRETS].toSorted());
  const lines = [...sources('src'), ...sources('scripts')].flatMap(([path, text]) =>
    text.split('\n').map((line) => `${path}: ${line.trim()}`),
  );
  expect(lines.filter((line) => DIRECT.test(line) && !CLEANED.test(line))).toEqual([]);
});
