// The path of a base URL is a boundary: with the operator's access, paths that some server reads as outside of it are refused.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, configure } from '../support/worker.ts';

const KEY = 'hg_base-path-0815';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('base-path', { echo: true });
  const { json } = await admin('POST', '/fingerprint', { key: KEY });
  const auth = { secret: 'UPSTREAM_TEST_KEY' };
  const match = { upstreams: ['ours', 'keyless', 'gemini'], models: ['m', 'cheap'] };
  await configure({
    upstreams: [
      { id: 'ours', base_url: `${strict.url}/tenants/a`, auth },
      { id: 'keyless', base_url: `${strict.url}/tenants/a`, auth: 'none' },
      { id: 'gemini', base_url: strict.url, auth, dialect: 'gemini' },
      { id: 'own', base_url: `${strict.url}/tenants/a` },
      { id: 'member', base_url: `${strict.url}/tenants/c` },
    ],
    groups: [
      { name: 'ours', match, limits: { max_concurrency: 4 } },
      {
        name: 'member',
        match: { upstreams: ['member'] },
        members: [{ name: 'a', upstream: 'ours' }],
      },
    ],
    keys: [{ id: 'team', hash: json.hash as string, allow: ['*'] }],
  });
});

afterAll(nothingLeaks);

async function ask(path: string, headers: Record<string, string> = {}) {
  const before = (await strict.stats()).total + (await strict.stats()).uncounted;
  const answer = await call(path, {
    method: 'POST',
    headers: { 'headgate-key': KEY, 'content-type': 'application/json', ...headers },
    body: '{"model":"m","messages":[]}',
  });
  const text = await answer.text();
  const reason = answer.headers.get('headgate-reason');
  const arrived = (await strict.stats()).total + (await strict.stats()).uncounted - before;
  return { status: answer.status, reason, text, arrived };
}

const UP = [
  '/..%2fb/v1/chat/completions',
  '/%2e%2e%2fb/v1/chat/completions',
  '/x/..%2f..%2fb/v1/chat/completions',
  '/..%5cb/v1/chat/completions',
  '/..;/b/v1/chat/completions',
  '/..;x=1/b/v1/chat/completions',
  '/%252e%252e%252fb/v1/chat/completions',
  '/%25252e%25252e/b/v1/chat/completions',
  '/%c0%ae%c0%ae/b/v1/chat/completions',
  '/%ef%bc%8e%ef%bc%8e/b/v1/chat/completions',
];

describe.each(['/ours', '/keyless', '/member'])('at %s', (at) => {
  it.each(UP)('%s is refused', async (path) => {
    const seen = await ask(`${at}${path}`);
    expect(seen).toMatchObject({ status: 403, reason: 'key_forbidden', arrived: 0 });
  });

  it('the error says why', async () => {
    const { text } = await ask(`${at}/..;/b/v1/chat/completions`);
    expect(text).toContain('outside of its base URL');
  });

  it.each(['/v1/chat/completions', '/x/../v1/chat/completions', '/v1//chat/completions'])(
    '%s leads nowhere else, and passes',
    async (path) => {
      expect(await ask(`${at}${path}`)).toMatchObject({ status: 200, reason: null });
    },
  );
});

it('a path without a slot is refused too', async () => {
  const seen = await ask('/ours/..%2fb/v1/files');
  expect(seen).toMatchObject({ status: 403, reason: 'key_forbidden', arrived: 0 });
});

it("a path passes unchanged with the caller's own key", async () => {
  const own = { authorization: 'Bearer sk-mine' };
  expect(await ask('/own/..%2fb/v1/chat/completions', own)).toMatchObject({ status: 200 });
});

it('a path in which servers read several models is refused', async () => {
  const path =
    '/gemini/v1beta/models/cheap:generateContent/..%2f..%2fmodels%2fdear:generateContent';
  const seen = await ask(path);
  expect(seen).toMatchObject({ status: 400, reason: 'model_ambiguous', arrived: 0 });
  expect(seen.text).toContain('dear');
});
