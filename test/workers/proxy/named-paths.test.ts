// Routes that nobody foresaw take a slot where a group names their path; the upstream counts.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, configure } from '../support/worker.ts';

const PLAIN = 'hg_plain-named-0815';
const OTHER = 'hg_other-named-0815';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('named-paths');
  const base_url = strict.url;
  const auth = { secret: 'UPSTREAM_TEST_KEY' };
  const hashOf = async (key: string): Promise<string> =>
    (await admin('POST', '/fingerprint', { key })).json.hash;
  const config: ConfigInput = {
    upstreams: [
      { id: 'house', base_url, openai_at: '/v1' },
      { id: 'shut', base_url, auth },
      { id: 'open', base_url, auth, allow: ['other'] },
    ],
    groups: [
      {
        name: 'custom',
        match: { upstreams: ['house'], paths: ['/v1/custom/*'] },
        limits: { max_concurrency: 1 },
      },
      {
        name: 'polls',
        match: { upstreams: ['house'], paths: ['/v1/stream/*'], methods: ['GET', 'DELETE'] },
        limits: { max_concurrency: 1 },
      },
      { name: 'files', match: { upstreams: ['shut', 'open'], paths: ['/v1/*'] } },
    ],
    keys: [
      { id: 'plain', hash: await hashOf(PLAIN) },
      { id: 'other', hash: await hashOf(OTHER), groups: ['files'], allow: ['other', 'files'] },
    ],
  };
  await configure(config);
});

afterAll(nothingLeaks);

const OWN = { 'headgate-key': PLAIN, authorization: 'Bearer sk-mine' };

function post(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return call(path, { json: { prompt: 'x' }, headers: { ...OWN, ...headers } });
}

async function groupsOf(answer: Response): Promise<string | null> {
  expect(answer.status).toBe(200);
  await answer.text();
  return answer.headers.get('headgate-groups');
}

it('calls of a path that a group names wait for its slots', async () => {
  const slow = { 'x-strict-first-byte-delay-ms': '40' };
  const paths = [
    '/house/v1/custom/run',
    '/house/V1/Custom/run',
    '/house/v1/custom;a/run',
    '/house/v1%2fcustom/run',
    '/house/v1/custom//run',
    '/house/v1/x%2f..%2fcustom/run',
  ];
  const answers = await Promise.all(paths.map((path) => post(path, slow)));
  expect(await Promise.all(answers.map(groupsOf))).toEqual(paths.map(() => 'custom'));
  expect(await strict.stats()).toMatchObject({ peak: 1, total: paths.length });
});

it('others pass, and so does what has no body', async () => {
  expect(await groupsOf(await post('/house/v1/tailor/run'))).toBeNull();
  expect(await groupsOf(await call('/house/v1/custom/run', { headers: OWN }))).toBeNull();
});

it('a GET takes a slot where its method is named', async () => {
  const counted = { ...OWN, 'x-strict-count': 'true', 'x-strict-first-byte-delay-ms': '30' };
  await strict.configure({ limit: 1 });
  const answers = await Promise.all(
    ['GET', 'DELETE', 'GET'].map((method) =>
      call('/house/v1/stream/1', { method, headers: counted }),
    ),
  );
  await strict.configure({ limit: null });
  expect(await Promise.all(answers.map(groupsOf))).toEqual(['polls', 'polls', 'polls']);
  expect(await groupsOf(await post('/house/v1/stream/1'))).toBeNull();
  const head = await call('/house/v1/stream/1', { method: 'HEAD', headers: OWN });
  expect(head.headers.get('headgate-groups')).toBeNull();
});

it('by the unified routes too', async () => {
  const answer = await post('/v1/custom/run', { 'headgate-upstream': 'house' });
  expect(await groupsOf(answer)).toBe('custom');
});

describe("with the operator's key", () => {
  const asked = async (key: string, method: string, path: string) => {
    const body = method === 'POST' ? { body: '{}' } : {};
    const answer = await call(path, { method, headers: { 'headgate-key': key }, ...body });
    const text = await answer.text();
    return { status: answer.status, groups: answer.headers.get('headgate-groups'), text };
  };

  it.each([
    [PLAIN, 'POST', '/shut/v1/custom/run', 'allow: [other]` of gateway key `plain`'],
    [PLAIN, 'POST', '/shut/v1/files', 'allow: [files]'],
    [PLAIN, 'POST', '/open/v1/files', 'allow: [files]'],
    [PLAIN, 'POST', '/open/v2/custom', 'unknown to Headgate'],
    [PLAIN, 'GET', '/open/v1/custom/run', 'unknown to Headgate'],
    [PLAIN, 'POST', '/open/v2/evil/..%2f..%2fv1/custom', 'unknown to Headgate'],
    [PLAIN, 'POST', '/open/v1/organization/invites', 'administers the account'],
    [OTHER, 'POST', '/open/v1/organization/invites', 'administers the account'],
    [OTHER, 'POST', '/open/v1/realtime/client_secrets', 'realtime session'],
  ])('%s may not %s %s: %s', async (key, method, path, words) => {
    const { total } = await strict.stats();
    const { status, text } = await asked(key, method, path);
    expect(status).toBe(403);
    expect(text).toContain(words);
    expect((await strict.stats()).total).toBe(total);
  });

  it.each([
    [PLAIN, '/open/v1/custom/run'],
    [OTHER, '/shut/v1/custom/run'],
    [OTHER, '/shut/v1/files'],
  ])('%s may POST %s, and takes a slot', async (key, path) => {
    expect(await asked(key, 'POST', path)).toMatchObject({ status: 200, groups: 'files' });
  });
});
