// The wall clock is set back by an hour while calls hold slots, wait and cool down.
import { afterAll, expect, it } from 'vitest';
import { steadyClock } from '../../../src/runtime/async.ts';
import { define, heldBy, nothingLeaks, pool, queueUp, resetPool, take } from '../support/pool.ts';
import { strictScope } from '../support/strict.ts';
import { passTime } from '../support/time.ts';
import { admin, configure, open } from '../support/worker.ts';

const HOUR_MS = 3_600_000;

afterAll(nothingLeaks);

it('a slot that cools down is free when it was to be', async () => {
  await define('cooling', 1, { holds: { failure_hold_ms: 300 } });
  const { lease } = await take('cooling', 'a');
  const { answer } = await queueUp('cooling', 'b');
  await lease.release('failed', 500);
  passTime(-HOUR_MS);
  expect(await pool('cooling').status()).toMatchObject({ cooling: 1, queued: 1 });
  const next = await answer;
  if (next.kind !== 'granted') throw new Error(next.kind);
  await next.lease.release('unused', null);
});

it('a call waits no longer than it wanted to, and acquire calls of before and after it keep their order', async () => {
  await define('patient', 1);
  const { lease } = await take('patient', 'a');
  const sentAt = Date.now();
  const first = await queueUp('patient', 'first', { sentAt, deadlineAt: sentAt + 1_500 });
  const second = await queueUp('patient', 'second', { sentAt, deadlineAt: sentAt + 60_000 });
  passTime(-HOUR_MS);
  const third = await queueUp('patient', 'third', { sentAt: Date.now() });
  expect(await first.answer).toMatchObject({ rejection: { reason: 'queue_timeout' } });
  await lease.release('unused', null);
  for (const { answer } of [second, third]) {
    const next = await answer;
    if (next.kind !== 'granted') throw new Error(next.kind);
    await next.lease.release('unused', null);
  }
});

it('a holder resumes after a reset, and what it held before frees nothing', async () => {
  await define('resumed', 1);
  const { lease, attachment } = await take('resumed', 'a');
  passTime(-HOUR_MS);
  await resetPool('resumed');
  const resumed = await pool('resumed').resume(heldBy('resumed', { leaseId: 'a.1', attachment }));
  if (resumed.kind !== 'granted') throw new Error(resumed.kind);
  expect(resumed.attachment).toBeGreaterThan(attachment);
  lease[Symbol.dispose]();
  expect(await pool('resumed').status()).toMatchObject({ in_use: 1 });
  await resumed.lease.release('unused', null);
});

it('a chart of the last hour shows what goes on', async () => {
  await configure({
    groups: [{ name: 'charted', match: { upstreams: ['openai'] }, limits: { max_concurrency: 1 } }],
  });
  const calls = async (ticket: string): Promise<void> => {
    const { lease } = await take('charted', ticket);
    await lease.release('unused', null);
  };
  await calls('before');
  passTime(-HOUR_MS);
  await calls('after');
  const { json } = await admin('GET', '/groups/charted/history');
  const granted = json.points.map((point: { granted: number }) => point.granted);
  expect(granted.reduce((sum: number, one: number) => sum + one, 0)).toBe(2);
  const preview = await admin('POST', '/groups/charted/preview?as=patch', {});
  expect(preview.json).toMatchObject({ last_hour: { granted: 2 } });
});

it('a caller is told in its time that nothing was free', async () => {
  const strict = await strictScope('set-back');
  await configure({
    upstreams: [{ id: 'back', base_url: strict.url }],
    groups: [{ name: 'back', match: { upstreams: ['back'] }, limits: { max_concurrency: 1 } }],
  });
  const { lease } = await take('back', 'a');
  const json = { model: 'm', messages: [{ role: 'user', content: 'waits' }] };
  const headers = { 'headgate-max-wait': '1500ms' };
  const waiting = open('/back/v1/chat/completions', 'waits', { json, headers });
  passTime(-HOUR_MS);
  const refused = await waiting.response;
  expect(refused.headers.get('headgate-reason')).toBe('queue_timeout');
  await lease.release('unused', null);
});

it('a caller is told in its time too by an unused group', async () => {
  const strict = await strictScope('set-back-new');
  const group = { name: 'unused', match: { upstreams: ['new'] }, limits: { max_concurrency: 1 } };
  await configure({ upstreams: [{ id: 'new', base_url: strict.url }], groups: [group] });
  // The Worker's clock goes on from where it was; the object's begins with the one on the wall.
  steadyClock.now();
  passTime(-HOUR_MS);
  steadyClock.now();
  const { lease } = await take('unused', 'a');
  const json = { model: 'm', messages: [{ role: 'user', content: 'waits' }] };
  const headers = { 'headgate-max-wait': '1500ms' };
  const refused = await open('/new/v1/chat/completions', 'waits', { json, headers }).response;
  expect(refused.headers.get('headgate-reason')).toBe('queue_timeout');
  await lease.release('unused', null);
});

it.each([2_500, 4_900, 60_000])(
  'by %i ms: a call is rejected in its time by an unused group, and none passes above the limit',
  async (stepMs) => {
    const id = `new-${stepMs}`;
    const strict = await strictScope(id);
    const limits = { max_concurrency: 1 };
    const on_unavailable = { pass_with_limit_each: 5 };
    const group = { name: id, match: { upstreams: [id] }, limits, on_unavailable };
    await configure({ upstreams: [{ id, base_url: strict.url }], groups: [group] });
    steadyClock.now();
    passTime(-stepMs);
    steadyClock.now();
    const { lease } = await take(id, 'a');
    const json = { model: 'm', messages: [{ role: 'user', content: 'waits' }] };
    const headers = { 'headgate-max-wait': '1500ms' };
    const refused = await open(`/${id}/v1/chat/completions`, 'waits', { json, headers }).response;
    expect(refused.headers.get('headgate-reason')).toBe('queue_timeout');
    expect(await strict.stats()).toMatchObject({ total: 0 });
    await lease.release('unused', null);
  },
);
