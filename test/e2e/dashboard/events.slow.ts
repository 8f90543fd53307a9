// The live feed over real sockets, behind serve's forwarder, as a browser's EventSource reads it.
import { afterEach, beforeEach, expect, it } from 'vitest';
import { EventReader } from '../../support/event-reader.ts';
import { changedWorker } from '../support/changed-worker.ts';
import { openChat } from '../support/lifecycle-call.ts';
import {
  practiceConfig,
  startStage,
  STAGE_TOKEN,
  type LifecycleStage,
} from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

const WITHIN = { everyMs: 20 };

/** Log line of the feed when it tells a pool that no dashboard is open. */
const NOBODY_LOOKS = 'feed wants nothing';

/** A Worker whose feed logs its responses to pools. */
const reportingWorker = changedWorker(
  'feed/feed-object.ts',
  'FeedObject',
  `const { push } = FeedObject.prototype;
FeedObject.prototype.push = async function (...told) {
  const wants = await push.apply(this, told);
  console.log('feed wants ' + wants);
  return wants;
};
`,
);

let stage: LifecycleStage;

beforeEach(async () => {
  stage = await startStage({
    config: practiceConfig(1),
    module: reportingWorker,
    upstream: { chunks: 3, chunkDelayMs: 20, silentAfterChunks: 1 },
  });
});

afterEach(() => stage.close());

async function openFeed(token = STAGE_TOKEN): Promise<EventReader> {
  const response = await fetch(`${stage.url()}/admin/api/events?group=practice`, {
    headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
  });
  expect(response.status).toBe(200);
  if (response.body === null) throw new Error('no body');
  return new EventReader(response.body as unknown as ReadableStream);
}

/** Reads the last news of the group, in the snapshot or since. */
function shown(reader: EventReader): { in_use?: number; queued?: number } {
  const reported = [...reader.of('snapshot'), ...reader.of('groups')].flatMap(
    ({ groups }) => groups,
  );
  return reported.findLast(({ name }) => name === 'practice') ?? {};
}

it('calls are seen as they queue, stream and leave', async () => {
  const reader = await openFeed();
  await until('the snapshot came', () => reader.of('snapshot').length === 1, WITHIN);
  const first = openChat(stage.url(), { label: 'first' });
  const second = openChat(stage.url(), { label: 'second' });
  await until('one streams and one waits', () => shown(reader).queued === 1, WITHIN);
  expect(shown(reader).in_use).toBe(1);
  await until('both are listed', () => reader.of('detail').at(-1)?.waiters_total === 1, WITHIN);
  expect(reader.of('detail').at(-1)).toMatchObject({ name: 'practice', leases_total: 1 });
  first.leave('FIN');
  await until('nobody waits', () => shown(reader).queued === 0, WITHIN);
  second.leave('FIN');
  await until('all is free', () => shown(reader).in_use === 0, WITHIN);
  const beats = reader.of('beat').length;
  await until('it beats on', () => reader.of('beat').length > beats, WITHIN);
  expect(stage.logs()).not.toContain(NOBODY_LOOKS);
  await reader.close();
});

it('a reader that left without a word is noticed, and the groups fall silent', async () => {
  const reader = await openFeed();
  await until('the snapshot came', () => reader.of('snapshot').length === 1, WITHIN);
  expect(stage.logs()).not.toContain(NOBODY_LOOKS);
  await reader.close();
  await until(
    'a group is told that nobody looks',
    async () => {
      const call = openChat(stage.url(), { label: 'unseen' });
      await call.answered;
      call.leave('FIN');
      await call.ended;
      return stage.logs().includes(NOBODY_LOOKS);
    },
    { ...WITHIN, everyMs: 500 },
  );
});

it('a kill ends the stream, and the next one is right', async () => {
  const reader = await openFeed();
  await until('the snapshot came', () => reader.of('snapshot').length === 1, WITHIN);
  await stage.kill9();
  expect(await reader.end).toBe('broken');
  await stage.start();
  const call = openChat(stage.url(), { label: 'later' });
  const again = await openFeed();
  await until('the call is seen', () => shown(again).in_use === 1, WITHIN);
  call.leave('FIN');
  await until('and its end', () => shown(again).in_use === 0, WITHIN);
  await again.close();
});

it('a key that is taken back sees no more within a minute', async () => {
  const api = `${stage.url()}/admin/api/admin-keys`;
  const headers = { authorization: `Bearer ${STAGE_TOKEN}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ id: 'looker', role: 'viewer' });
  const made = await fetch(api, { method: 'POST', headers, body });
  const { secret } = (await made.json()) as { secret: string };
  const [looker, owner] = [await openFeed(secret), await openFeed()];
  await until('the snapshot came', () => looker.of('snapshot').length === 1, WITHIN);
  expect((await fetch(`${api}/looker`, { method: 'DELETE', headers })).status).toBe(200);
  expect(['done', 'broken']).toContain(await looker.end);
  const refused = await fetch(`${stage.url()}/admin/api/events`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  expect(refused.status).toBe(401);
  const beats = owner.of('beat').length;
  await until('the other reads on', () => owner.of('beat').length > beats, WITHIN);
  await owner.close();
});
