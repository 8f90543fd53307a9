// What a doctor says of those that do not answer: the rest of what was found is told all the same.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { doctor } from '../../../scripts/cli/commands/doctor.ts';
import { targetOf } from '../../../scripts/cli/target.ts';

const URL_HERE = 'http://headgate.test';

const upstream = (id: string) => ({
  id,
  enabled: true,
  configured: {},
  secret: null,
  groups: [],
  openai_at: '/v1',
  anthropic_at: null,
});

const tooLate = (): never => {
  throw new DOMException('Too late.', 'TimeoutError');
};

const refusedWith = (reason: string) => (): Response =>
  new Response('', { status: 502, headers: { 'headgate-reason': reason } });

const NOTHING = { at: new Date().toISOString(), version: 3, attention: [], left_out: 0 };

const ENTRY = {
  rule: 'refused_by_upstream',
  subject: { kind: 'group', id: 'chat' },
  group: 'chat',
  since: null,
  count: 276,
  says: "openai refuses every call: 276 × 429 'quota exceeded' in 10 minutes.",
  words: 'quota exceeded',
  advice: 'Pay the account.',
};

const ANSWERS: Readonly<Record<string, () => Response>> = {
  '/': () => new Response('Headgate\nSet up:\n  directory      ready\n'),
  '/admin/api/session': () => Response.json({ actor: 'admin-token', role: 'admin' }),
  '/admin/api/upstreams': () =>
    Response.json({ upstreams: ['slow', 'gone', 'busy'].map(upstream), next_cursor: null }),
  '/admin/api/isolate': () =>
    Response.json({ id: 'one', release: '0.1.0', config_reads: 1, config_waits: 0 }),
  '/admin/api/attention': () => Response.json({ ...NOTHING, at: new Date().toISOString() }),
  '/slow/v1/models': tooLate,
  '/gone/v1/models': refusedWith('upstream_unreachable'),
  '/busy/v1/models': () => new Response('', { status: 429 }),
  '/v1/chat/completions': tooLate,
};

afterEach(() => vi.unstubAllGlobals());

it('names the provider that is silent, and the call that waits', async () => {
  vi.stubGlobal('fetch', async (address: string) => {
    const answer = ANSWERS[new URL(address).pathname];
    if (answer === undefined) throw new Error(`Nobody expected ${address}.`);
    return answer();
  });
  const written: string[] = [];
  const output = { isJson: true, out: (text: string) => written.push(text), note: () => undefined };
  const target = targetOf({ url: URL_HERE, token: 'token' }, {});
  const options = { all: false, key: null, release: '0.1.0' };
  const code = await doctor(target, output, { ...options, model: 'slow/m' });
  expect(code).toBe(1);
  const { findings } = JSON.parse(written.join('')) as { findings: Record<string, string>[] };
  expect(findings.map(({ check, result, detail }) => [check, result, detail])).toEqual([
    ['directory', 'ok', 'ready'],
    ['token', 'ok', 'admin-token, role admin'],
    ['group state', 'ok', 'no group needs attention'],
    ['refused calls', 'ok', 'none in the last 10 minutes that require action'],
    ['secrets', 'ok', 'all secrets named in the configuration are set'],
    ['warnings', 'ok', 'the configuration has no warnings'],
    ['clock', 'ok', expect.anything()],
    ['versions', 'ok', 'Headgate 0.1.0 on both sides, configuration version 3'],
    ['slow', 'failed', 'no response within 10 s'],
    ['gone', 'failed', 'Headgate cannot reach it (upstream_unreachable)'],
    ['busy', 'failed', expect.stringMatching(/^returned 429 in \d+ ms$/)],
    ['disk', 'skipped', 'only for headgate serve on this machine. Name its folder with --data'],
    ['test call', 'failed', 'no response within 60 s'],
  ]);
});

it.each<[string, Partial<typeof NOTHING> | { attention: unknown[] }, string, RegExp]>([
  [
    'group state: chat',
    { attention: [ENTRY] },
    'failed',
    /^refused_by_upstream: openai refuses every call: 276 × 429 'quota exceeded' in 10 minutes\. Pay the account\.$/,
  ],
  [
    'secrets: openai',
    {
      attention: [
        { ...ENTRY, rule: 'secret_missing', subject: { kind: 'upstream', id: 'openai' } },
      ],
    },
    'missing',
    /^secret_missing: /,
  ],
  [
    'warnings: configuration',
    {
      attention: [
        { ...ENTRY, rule: 'config_warning', subject: { kind: 'deployment', id: 'configuration' } },
      ],
    },
    'failed',
    /^config_warning: /,
  ],
  [
    'clock',
    { at: new Date(Date.now() - 3_600_000).toISOString() },
    'failed',
    /the clock of the deployment is 1 hour behind this machine's/,
  ],
])('ends with 1 for %s', async (check, changes, result, detail) => {
  const code = await doctorWith({ '/admin/api/attention': { ...NOTHING, ...changes } });
  expect(code.code).toBe(1);
  expect(code.findings).toContainEqual({ check, result, detail: expect.stringMatching(detail) });
});

it('ends with 0 if all is well, and with 1 for another release', async () => {
  const now = { ...NOTHING, at: new Date().toISOString() };
  expect((await doctorWith({ '/admin/api/attention': now })).code).toBe(0);
  const other = await doctorWith({
    '/admin/api/attention': now,
    '/admin/api/isolate': { id: 'one', release: '0.2.0', config_reads: 1, config_waits: 0 },
  });
  expect(other.code).toBe(1);
  expect(other.findings.find(({ check }) => check === 'versions')?.['detail']).toContain(
    'the server runs Headgate 0.2.0',
  );
});

it.each(['MISSING', 'UNUSABLE', 'DISABLED', 'UNREACHABLE'])(
  'reports what the start page calls %s as missing',
  async (word) => {
    const { code, findings } = await doctorWith({
      '/': new Response(`Headgate\nSet up:\n  Admin routes   ${word}: a reason\n`),
    });
    expect(code).toBe(1);
    expect(findings[0]).toEqual({
      check: 'admin routes',
      result: 'missing',
      detail: `${word}: a reason`,
    });
  },
);

it('asks no provider without a key that opens for a gateway key alone', async () => {
  const secret = { name: 'UPSTREAM_X', is_set: true, fault: null, set_with: '' };
  const { findings } = await doctorWith({
    '/admin/api/upstreams': { upstreams: [{ ...upstream('sealed'), secret }], next_cursor: null },
    '/sealed/v1/models': { error: 'Nobody expected a call.' },
  });
  expect(findings).toContainEqual({
    check: 'sealed',
    result: 'skipped',
    detail: 'needs a gateway key. Set HEADGATE_KEY to check it',
  });
});

it('suspects the base URL of a provider that answers with a web page, or not at all', async () => {
  const upstreams = [upstream('page'), upstream('nothing'), upstream('well')];
  const { findings } = await doctorWith({
    '/admin/api/upstreams': { upstreams, next_cursor: null },
    '/page/v1/models': new Response('<html></html>', { headers: { 'content-type': 'text/html' } }),
    '/well/v1/models': { data: [] },
  });
  const found = (check: string) => findings.find((one) => one['check'] === check);
  expect(found('page')).toMatchObject({
    result: 'failed',
    detail: expect.stringMatching(/^returned 200 in \d+ ms with a web page .*\. Check `base_url`$/),
  });
  expect(found('nothing')?.['detail']).toMatch(/404 in \d+ ms\. .* or `base_url` is wrong$/);
  expect(found('well')?.['detail']).toMatch(/^returned 200 in \d+ ms$/);
});

it('looks at the data folder: that it can be written to, and has room', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'doctor-'));
  const now = { '/admin/api/attention': { ...NOTHING, at: new Date().toISOString() } };
  const well = await doctorWith(now, folder);
  expect(well.findings.find(({ check }) => check === 'disk')).toMatchObject({ result: 'ok' });
  const gone = await doctorWith(now, join(folder, 'gone'));
  expect(gone.code).toBe(1);
  expect(gone.findings.find(({ check }) => check === 'disk')?.['detail']).toContain('ENOENT');
  await rm(folder, { recursive: true });
});

/** Runs a doctor against a server without providers that answers so. */
async function doctorWith(changes: Readonly<Record<string, object>>, data?: string) {
  vi.stubGlobal('fetch', async (address: string) => {
    const { pathname } = new URL(address);
    const changed = changes[pathname];
    if (changed instanceof Response) return changed;
    if (changed !== undefined) return Response.json(changed);
    if (pathname === '/admin/api/upstreams') {
      return Response.json({ upstreams: [], next_cursor: null });
    }
    return ANSWERS[pathname]?.() ?? new Response('', { status: 404 });
  });
  const written: string[] = [];
  const output = { isJson: true, out: (text: string) => written.push(text), note: () => undefined };
  const options = { all: false, key: null, release: '0.1.0', ...(data !== undefined && { data }) };
  const code = await doctor(targetOf({ url: URL_HERE, token: 'token' }, {}), output, options);
  const { findings } = JSON.parse(written.join('')) as { findings: Record<string, string>[] };
  return { code, findings };
}
