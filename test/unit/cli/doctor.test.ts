// What a doctor says of those that do not answer: the rest of what was found is told all the same.
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

const ANSWERS: Readonly<Record<string, () => Response>> = {
  '/': () => new Response('Headgate\nSet up:\n  directory      ready\n'),
  '/admin/api/session': () => Response.json({ actor: 'admin-token', role: 'admin' }),
  '/admin/api/upstreams': () =>
    Response.json({ upstreams: ['slow', 'gone', 'busy'].map(upstream), next_cursor: null }),
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
  const code = await doctor(target, output, { all: false, key: null, model: 'slow/m' });
  expect(code).toBe(1);
  const { findings } = JSON.parse(written.join('')) as { findings: Record<string, string>[] };
  expect(findings.map(({ check, result, detail }) => [check, result, detail])).toEqual([
    ['directory', 'ok', 'ready'],
    ['token', 'ok', 'admin-token, role admin'],
    ['slow', 'failed', 'no answer within 10 s'],
    ['gone', 'failed', 'Headgate cannot reach it (upstream_unreachable)'],
    ['busy', 'failed', expect.stringMatching(/^answers 429 in \d+ ms$/)],
    ['test call', 'failed', 'no answer within 60 s'],
  ]);
});
