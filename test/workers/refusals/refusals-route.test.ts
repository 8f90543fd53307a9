// `GET /admin/api/refusals`, and what a caller sees of its own refused calls at `/status`.
import { beforeAll, expect, it } from 'vitest';
import type { RefusalCount } from '../../../src/contract/reasons.ts';
import { directoryOf } from '../../../src/env.ts';
import { makeKey } from '../admin/keys-scene.ts';
import { admin, call, configure, env } from '../support/worker.ts';

let secret = '';

function refused(changes: Partial<RefusalCount>, ageMs = 60_000): RefusalCount {
  const at = new Date(Date.now() - ageMs).toISOString();
  const none = { key: null, key_kind: null, team: null, group: null, upstream: null, model: null };
  const sum = { count: 1, first_at: at, last_at: at, message: 'No.', request_ids: [] };
  return { reason: 'key_missing', ...none, ...sum, ...changes };
}

beforeAll(async () => {
  await configure({
    upstreams: [{ id: 'mine', base_url: 'https://llm.example.com' }],
    groups: [{ name: 'chats', match: { upstreams: ['mine'] } }],
    teams: [{ id: 'red' }],
    keys: [{ id: 'other', hash: `sha256:${'0'.repeat(64)}` }],
  });
  secret = await makeKey({ team: 'red' }, 'alice');
  const ofAlice = { key: 'alice', key_kind: 'gateway', team: 'red', upstream: 'mine' } as const;
  const unpriced = { ...ofAlice, reason: 'price_unknown', group: 'chats' } as const;
  await directoryOf(env).noteRefusals([
    refused({ upstream: 'mine', count: 4, request_ids: ['req-1'] }),
    refused({ ...unpriced, model: 'gpt-9', count: 3 }, 180_000),
    refused({ ...unpriced, model: 'gpt-9', count: 2 }),
    refused({ ...unpriced, model: 'gpt-8' }),
    refused({ ...ofAlice, key: 'other', reason: 'key_forbidden' }),
  ]);
});

it('rows with the same facts are added up, the most frequent reason first, each with advice', async () => {
  const { json } = await admin('GET', '/refusals');
  expect(json.count).toBe(11);
  const rows = json.refusals.map((one: RefusalCount) => [one.reason, one.model, one.count]);
  expect(rows).toEqual([
    ['price_unknown', 'gpt-9', 5],
    ['price_unknown', 'gpt-8', 1],
    ['key_missing', null, 4],
    ['key_forbidden', null, 1],
  ]);
  expect(json.refusals[0].advice).toContain('fallback_price');
});

it.each([
  ['reason=price_unknown', 6],
  ['key=alice', 6],
  ['team=red', 7],
  ['group=chats', 6],
  ['upstream=mine', 11],
  ['q=req-1', 4],
  ['q=gpt-9', 5],
  // Known, and nothing was refused.
  ['reason=internal', 0],
  ['group=auto:openai', 0],
])('%s narrows the list', async (query, count) => {
  expect((await admin('GET', `/refusals?${query}`)).json.count).toBe(count);
});

it('since leaves out earlier minutes', async () => {
  const since = new Date(Date.now() - 120_000).toISOString();
  expect((await admin('GET', `/refusals?since=${since}`)).json.count).toBe(8);
});

it.each([
  ['reason=price_unknwn', 'reason', 'Did you mean `price_unknown`?'],
  ['key=alicia', 'key', 'Did you mean `alice`?'],
  ['team=redd', 'team', 'Did you mean `red`?'],
  ['group=chat', 'group', 'Did you mean `chats`?'],
  ['upstream=mines', 'upstream', 'Did you mean `mine`?'],
  ['key=nothing-like-it', 'key', 'is not configured, and no rejected call has it.'],
])('%s is an error that names the nearest', async (query, path, hint) => {
  const { status, json } = await admin('GET', `/refusals?${query}`);
  expect(status).toBe(422);
  expect(json.errors).toEqual([{ path, message: expect.stringContaining(hint) }]);
});

it('a caller sees its own refused calls, and those of no other key', async () => {
  const answer = await call('/status', { headers: { 'headgate-key': secret } });
  const { refusals } = await answer.json<{ refusals: RefusalCount[] }>();
  const rows = refusals.map(({ reason, model, count }) => `${reason} ${model} ${count}`);
  expect(rows.toSorted()).toEqual(['price_unknown gpt-8 1', 'price_unknown gpt-9 5']);
});
