// An upstream that does not serve the region of the Worker: no wait mends that, and the log says what to set.
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { call, configure } from '../support/worker.ts';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('region');
  const upstream = { base_url: strict.url };
  await configure({
    upstreams: [
      { id: 'far', ...upstream },
      { id: 'google', ...upstream, dialect: 'gemini' },
    ],
    groups: [
      { name: 'far', match: { upstreams: ['far', 'google'] }, limits: { max_concurrency: 1 } },
    ],
  });
});

afterEach(() => vi.restoreAllMocks());

afterAll(nothingLeaks);

const REFUSED = { 'x-strict-region-refused': '1' };
const CHAT = { model: 'm', messages: [{ role: 'user', content: 'a secret question' }] };
const CONTENTS = { contents: [{ parts: [{ text: 'a secret question' }] }] };

async function send(id: string, path: string, json: unknown, setting: object) {
  const lines: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  const headers = { authorization: 'Bearer sk-never-logged', ...setting };
  const response = await call(`/${id}${path}`, { json, headers });
  expect(lines.join('\n')).not.toMatch(/secret question|sk-never/);
  return { response, text: await response.text(), logged: lines.map((line) => JSON.parse(line)) };
}

it.each([
  ['far', '/v1/chat/completions', CHAT, 403, 'unsupported_country_region_territory'],
  ['google', '/v1beta/models/m:generateContent', CONTENTS, 400, 'User location is not supported'],
])('a refusal by region of %s goes to the caller, and the log says what to set', async (...row) => {
  const [id, path, json, status, says] = row;
  const { response, text, logged } = await send(id, path, json, REFUSED);
  expect(response.status).toBe(status);
  expect(response.headers.get('headgate-reason')).toBeNull();
  expect(text).toContain(says);
  const set: unknown = expect.stringContaining('[placement] in wrangler.toml');
  expect(logged).toEqual([{ event: 'upstream_refused_region', upstream: id, status, set }]);
});

it('another 403 is none', async () => {
  const forbidden = { 'x-strict-status': '403' };
  const { response, logged } = await send('far', '/v1/chat/completions', CHAT, forbidden);
  expect(response.status).toBe(403);
  expect(logged).toEqual([]);
});
