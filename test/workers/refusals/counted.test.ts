// Refused calls reach the directory and the log behind the calls: their facts, their bounds, and none of their secrets.
import { afterEach, beforeAll, expect, it, vi } from 'vitest';
import type { RefusalCount } from '../../../src/contract/reasons.ts';
import { DirectoryObject } from '../../../src/directory/directory-object.ts';
import { directoryOf } from '../../../src/env.ts';
import { makeKey } from '../admin/keys-scene.ts';
import { strictScope } from '../support/strict.ts';
import { passTime } from '../support/time.ts';
import { chat, configure, env, until } from '../support/worker.ts';

const CHAT = '/counted/v1/chat/completions';

/** Counts are reported to the directory once in this time, and a second after the first of them. */
const EVERY_MS = 10_000;

let secret = '';

beforeAll(async () => {
  const strict = await strictScope('counted', { limit: 4 });
  await configure({
    upstreams: [{ id: 'counted', base_url: strict.url }],
    groups: [
      { name: 'closed', match: { models: ['gpt-4o-mini'], upstreams: ['counted'] } },
      { name: 'open', match: { upstreams: ['counted'] }, paused: true },
    ],
    keys: [{ id: 'other', hash: `sha256:${'0'.repeat(64)}` }],
  });
  secret = await makeKey({ team: 'red', groups: ['open'] }, 'alice');
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** Waits until the directory lists so many refused calls. A minute may have ended between two of them. */
async function listed(isIt: (one: RefusalCount) => boolean, count = 1): Promise<RefusalCount> {
  let found: RefusalCount[] = [];
  await until(async () => {
    found = (await directoryOf(env).refusals(0)).filter(isIt);
    expect(found.reduce((sum, one) => sum + one.count, 0)).toBe(count);
  });
  return found[0] as RefusalCount;
}

it('a call without a gateway key counts for the fingerprint of its provider key and its upstream', async () => {
  const headers = { authorization: 'Bearer sk-of-a-team', 'x-request-id': 'req-4711' };
  expect((await chat(CHAT, 'none', { headers })).status).toBe(401);
  const one = await listed(({ reason }) => reason === 'key_missing');
  expect(one).toMatchObject({
    upstream: 'counted',
    team: null,
    group: null,
    request_ids: ['req-4711'],
  });
});

it('a call that its key may not make counts for the key, its team, the group and the model', async () => {
  passTime(EVERY_MS);
  const lines: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  const answer = await chat(CHAT, 'barred', { headers: { 'headgate-key': secret } });
  expect(answer.headers.get('headgate-reason')).toBe('key_forbidden');
  const facts = {
    reason: 'key_forbidden',
    key: 'alice',
    team: 'red',
    group: 'closed',
    upstream: 'counted',
    model: 'gpt-4o-mini',
    message:
      'Gateway key `alice` may not use group `closed`. An operator can add it to `groups` of the key.',
  };
  expect(await listed(({ reason }) => reason === 'key_forbidden')).toMatchObject({
    ...facts,
    key_kind: 'gateway',
  });
  expect(lines.map((line) => JSON.parse(line))).toContainEqual({
    event: 'call_refused',
    level: 'warn',
    ...facts,
    count: 1,
  });
});

it('a key that stands where none belongs is neither listed nor logged', async () => {
  passTime(EVERY_MS);
  const lines: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  const misplaced = 'hunter2hunter2';
  const headers = { authorization: `Bearer ${misplaced}`, 'headgate-key': secret };
  const answer = await chat(`/${misplaced}/v1/chat/completions`, 'misplaced', { headers });
  expect(answer.headers.get('headgate-reason')).toBe('upstream_unknown');
  const one = await listed(({ reason }) => reason === 'upstream_unknown');
  expect(one.upstream).toBeNull();
  expect(JSON.stringify([one, lines])).not.toContain(misplaced);
});

it('many refusals cost few messages to the directory, and none is lost while it is out of reach', async () => {
  passTime(EVERY_MS);
  // oxlint-disable-next-line typescript/unbound-method -- called with its object below
  const { noteRefusals } = DirectoryObject.prototype;
  let isOut = true;
  const reported = vi
    .spyOn(DirectoryObject.prototype, 'noteRefusals')
    .mockImplementation(function note(this: DirectoryObject, counts) {
      return isOut ? Promise.reject(new Error('out of reach')) : noteRefusals.call(this, counts);
    });
  const refused = (n: number) =>
    chat(CHAT, `flood ${n}`, { headers: { 'headgate-key': `hg_unknown_${n}` } });
  await Promise.all(Array.from({ length: 8 }, (_, n) => refused(n)));
  await until(() => expect(reported).toHaveBeenCalled());
  isOut = false;
  passTime(EVERY_MS);
  await refused(9);
  await listed(({ reason }) => reason === 'key_invalid', 9);
  expect(reported.mock.calls.length).toBeLessThan(4);
});
