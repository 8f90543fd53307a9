// Leases over HTTP: asked for, renewed, released, each answer once more and with the same effect; and who may do so.
import { afterAll, expect, it } from 'vitest';
import { leasesOpenApi } from '../../../dashboard/api-docs/leases-openapi.ts';
import { parkedMs } from '../../../src/call/leases/post-lease.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { crashPool, nothingLeaks, passAwake, pool, untilStatus } from '../support/pool.ts';
import { call } from '../support/worker.ts';
import { del, group, leased, leave, limitTo, patch, post, put, queued } from './scene.ts';

afterAll(nothingLeaks);

it('is granted, renewed and released, the second time too', async () => {
  await limitTo([group('one', 1)]);
  const lease = await leased({ group: 'one', agent: 'run-1', model: 'glm-5' });
  expect(lease).toMatchObject({ groups: ['one'], member: null, lease_ids: [expect.any(String)] });
  expect(lease.expires_after_ms).toBeGreaterThan(30_000);
  expect(lease.renew_within_ms).toBeGreaterThan(5_000);
  expect(await pool('one').leases()).toMatchObject([
    { id: lease.lease_ids[0], kind: 'lease', agent: 'run-1', model: 'glm-5', state: 'held' },
  ]);
  const renewed = await put(lease.lease);
  expect(renewed).toMatchObject({ status: 200, body: { renew_within_ms: expect.any(Number) } });
  // The one before works too.
  expect(await put(lease.lease)).toMatchObject({ status: 200 });
  expect(await del(renewed.body.lease)).toMatchObject({ status: 204, body: null });
  expect(await pool('one').status()).toMatchObject({ in_use: 0 });
  expect(await del(renewed.body.lease)).toMatchObject({ status: 204 });
  expect(await del(lease.lease)).toMatchObject({ status: 204 });
  expect(await put(renewed.body.lease)).toMatchObject({ status: 410, reason: 'lease_gone' });
});

it('headers of an answer are those of calls', async () => {
  await limitTo([group('headers', 1, { limits: { max_concurrency: 1, rpm: 60 } })]);
  const { headers, body } = await post({ group: 'headers' });
  expect(headers.get('headgate-groups')).toBe('headers');
  expect(headers.get('headgate-lease')).toBe(body.lease_ids[0]);
  expect(headers.get('headgate-wait-ms')).toBe(String(body.waited_ms));
  expect(headers.get('x-ratelimit-limit-requests')).toBe('60');
  await del(body.lease);
});

it('the same request again is the same lease', async () => {
  await limitTo([group('again', 2)]);
  const name = { 'idempotency-key': 'job-1' };
  const [first, second] = await Promise.all([
    leased({ group: 'again' }, name),
    leased({ group: 'again' }, name),
  ]);
  expect(second.lease_ids).toEqual(first.lease_ids);
  expect(await pool('again').status()).toMatchObject({ in_use: 1, granted_total: 1 });
  await del(second.lease);
  // It has ended: a copy that comes late gets no slot that nobody would give back.
  expect(await post({ group: 'again' }, name)).toMatchObject({ status: 410, reason: 'lease_gone' });
  const other = await leased({ group: 'again' }, { 'idempotency-key': 'job-2' });
  expect(other.lease_ids).not.toEqual(first.lease_ids);
  await del(other.lease);
});

it('waits in the queue over several requests, with its place, and may leave it', async () => {
  await limitTo([group('queue', 1)]);
  const held = await leased({ group: 'queue' });
  const first = await queued({ group: 'queue' }, { 'idempotency-key': 'first' });
  const second = await queued({ group: 'queue' });
  expect([first.position, second.position]).toEqual([0, 1]);
  expect(await pool('queue').waiters()).toMatchObject([{ kind: 'lease' }, { kind: 'lease' }]);
  await del(held.lease);
  // A place that nobody asks for gets no slot.
  expect(await pool('queue').status()).toMatchObject({ in_use: 0, queued: 2 });
  const lease = await leased({ group: 'queue', ticket: first.ticket });
  expect(await queued({ group: 'queue', ticket: second.ticket })).toMatchObject({ position: 0 });
  expect(await leave(second.ticket)).toMatchObject({ status: 204 });
  expect(await leave(second.ticket)).toMatchObject({ status: 204 });
  expect(await pool('queue').status()).toMatchObject({ queued: 0 });
  expect(await post({ group: 'queue', ticket: second.ticket })).toMatchObject({ status: 410 });
  await del(lease.lease);
});

it.each([
  ['wait=10', 10_000],
  ['Wait = "10"; x=1', 10_000],
  ['respond-async, wait=0', 0],
  ['x="a, wait=9", wait=0', 0],
  ['x-wait=3', 25_000],
  ['wait=soon', 25_000],
  ['wait=600', 25_000],
])('the wait in Prefer is parsed by its grammar: %s', (prefer, waitMs) => {
  expect(parkedMs({ headers: new Headers({ prefer }) })).toBe(waitMs);
});

it('a parked request is granted as soon as there is a slot', async () => {
  await limitTo([group('parked', 1)]);
  const held = await leased({ group: 'parked' });
  const waiting = leased({ group: 'parked' });
  await untilStatus('parked', { queued: 1 });
  await del(held.lease);
  expect(await del((await waiting).lease)).toMatchObject({ status: 204 });
});

it('a caller that leaves is taken out of the queue, and one that can ask again keeps its place for a moment', async () => {
  await limitTo([group('left', 1)]);
  const held = await leased({ group: 'left' });
  const client = new AbortController();
  const send = (headers: Record<string, string>) =>
    call('/leases', { json: { group: 'left' }, headers, signal: client.signal }).catch(() => null);
  const both = [send({}), send({ 'idempotency-key': 'kept' })];
  await untilStatus('left', { queued: 2 });
  client.abort();
  await Promise.all(both);
  await untilStatus('left', { queued: 1 });
  await del(held.lease);
  expect(await pool('left').status()).toMatchObject({ in_use: 0, queued: 1 });
  await del((await leased({ group: 'left' }, { 'idempotency-key': 'kept' })).lease);
});

it('says at once that it is busy to who does not want to wait', async () => {
  await limitTo([group('busy', 1)]);
  const held = await leased({ group: 'busy' });
  const busy = await post({ group: 'busy', max_wait_ms: 0 });
  expect(busy).toMatchObject({ status: 429, reason: 'busy' });
  expect(Number(busy.headers.get('retry-after-ms'))).toBeGreaterThan(0);
  expect(await post({ group: 'busy', max_wait_ms: 30 })).toMatchObject({ reason: 'queue_timeout' });
  expect(await post({ group: 'busy', slots: 2 })).toMatchObject({ status: 413 });
  await del(held.lease);
});

it('lapses unless it is renewed, and is not renewed behind that', async () => {
  await limitTo([group('lapses', 1)]);
  const held = await leased({ group: 'lapses' });
  await passAwake('lapses', LEASE_TTL_MS + 1);
  expect(await pool('lapses').status()).toMatchObject({ in_use: 0 });
  expect(await put(held.lease)).toMatchObject({ status: 410, reason: 'lease_gone' });
  expect(await del(held.lease)).toMatchObject({ status: 204 });
});

it('an operator takes it away: the next renewal says so', async () => {
  await limitTo([group('revoked', 1)]);
  const held = await leased({ group: 'revoked' });
  await pool('revoked').revoke(held.lease_ids[0] ?? '');
  expect(await put(held.lease)).toMatchObject({ status: 410, reason: 'lease_revoked' });
  expect(await pool('revoked').status()).toMatchObject({ in_use: 1 });
  await del(held.lease, { outcome: 'cancelled' });
  expect(await pool('revoked').status()).toMatchObject({ in_use: 0 });
});

it('is held no longer than its group lets anything be held', async () => {
  await limitTo([group('bounded', 1, { holds: { max_hold_ms: 20_000 } })]);
  const held = await leased({ group: 'bounded' });
  expect(held.renew_within_ms).toBeLessThanOrEqual(20_000);
  await passAwake('bounded', 20_001);
  expect(await put(held.lease)).toMatchObject({ status: 410, reason: 'hold_exceeded' });
  await del(held.lease);
});

it('is held no longer than that, however often its request is repeated', async () => {
  await limitTo([group('repeated', 1, { holds: { max_hold_ms: 20_000 } })]);
  const wanted = { group: 'repeated' };
  const name = { 'idempotency-key': 'job' };
  await leased(wanted, name);
  await passAwake('repeated', 15_000);
  const again = await leased(wanted, name);
  expect(again.renew_within_ms).toBeLessThanOrEqual(5_000);
  await passAwake('repeated', 6_000);
  const exceeded = { status: 410, reason: 'hold_exceeded' };
  expect(await put(again.lease)).toMatchObject(exceeded);
  expect(await pool('repeated').status()).toMatchObject({ in_use: 1 });
  expect(await post(wanted, name)).toMatchObject(exceeded);
  await untilStatus('repeated', { in_use: 0 });
  expect(await post(wanted, name)).toMatchObject({ status: 410, reason: 'lease_gone' });
});

it('goes on over a crash of its pool, and waits on with its age', async () => {
  await limitTo([group('crash', 1)]);
  const held = await leased({ group: 'crash' });
  const waiting = await queued({ group: 'crash' });
  await crashPool('crash');
  const renewed = await put(held.lease);
  expect(renewed).toMatchObject({ status: 200 });
  expect(await pool('crash').status()).toMatchObject({ in_use: 1, unclaimed: 0 });
  const parked = leased({ group: 'crash', ticket: waiting.ticket });
  await untilStatus('crash', { queued: 1 });
  await del(renewed.body.lease);
  const next = await parked;
  expect(next.waited_ms).toBeGreaterThan(0);
  await del(next.lease);
});

it.each([
  ['nothing', {}, 'group: expected either group or upstream'],
  ['two places', { group: 'a', upstream: 'b' }, 'group: expected either group or upstream'],
  ['a slot that is none', { group: 'a', slots: 0 }, 'slots: '],
  ['a lane that is none', { group: 'a', lane: 'urgent' }, 'lane: '],
  ['a field that is none', { group: 'a', max_wait: 1 }, 'max_wait: '],
  ['an instant that is none', { group: 'a', agent_started_at: 'now' }, 'agent_started_at: '],
])('refuses %s, and says why', async (_name, body, message) => {
  await limitTo([group('a', 1)]);
  const refused = await post(body);
  expect(refused).toMatchObject({ status: 400, reason: 'field_invalid' });
  expect(refused.headers.get('content-type')).toBe('application/problem+json');
  expect(refused.body.detail).toContain(message);
});

it('refuses what it does not know', async () => {
  await limitTo([group('a', 1)]);
  expect(await post({ group: 'b' })).toMatchObject({ status: 404, reason: 'group_unknown' });
  expect(await post({ upstream: 'b' })).toMatchObject({ status: 404, reason: 'upstream_unknown' });
  expect(await post([] as never)).toMatchObject({ status: 400 });
  const texts = ['not json', `{"group":"${'x'.repeat(200_000)}"}`];
  for (const body of texts) {
    const answer = await call('/leases', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    expect(answer.status).toBe(400);
    expect(answer.headers.get('headgate-reason')).toBe('body_unreadable');
  }
  expect((await call('/leases')).status).toBe(405);
  expect((await call('/tickets/x', { method: 'PUT' })).status).toBe(405);
});

it.each([
  ['nothing of ours', 'x'],
  ['an empty signature', 'a.e30.'],
  ['a signature of something else', `a.e30.${'A'.repeat(43)}`],
  ['dots', '....'],
  ['what is no base64', 'a.%%%.***'],
])('refuses a token that is %s', async (_name, token) => {
  await limitTo([group('a', 1)]);
  const unknown = { status: 404, reason: 'lease_unknown' };
  expect(await put(token)).toMatchObject(unknown);
  expect(await patch(token, { status: 200 })).toMatchObject(unknown);
  expect(await del(token)).toMatchObject(unknown);
  expect(await leave(token)).toMatchObject(unknown);
  expect(await post({ group: 'a', ticket: token })).toMatchObject(unknown);
});

it('a token that was changed, or is of the other kind, is none', async () => {
  await limitTo([group('tokens', 1)]);
  const { lease } = await leased({ group: 'tokens' });
  const { ticket } = await queued({ group: 'tokens' });
  const [id, attempt, payload = '', mac] = lease.split('.');
  const other = JSON.parse(atob(payload.replace(/-/g, '+').replace(/_/g, '/'))) as object;
  const changed = btoa(JSON.stringify({ ...other, slots: 9 })).replace(/=+$/, '');
  for (const token of [`${id}.${attempt}.${changed}.${mac}`, ticket, `x${lease}`]) {
    expect(await put(token)).toMatchObject({ status: 404, reason: 'lease_unknown' });
  }
  expect(await leave(lease)).toMatchObject({ status: 404 });
  await leave(ticket);
  await del(lease);
});

it('a page of a configured origin may use it', async () => {
  const origin = 'https://app.test';
  await limitTo([group('cors', 1)], { cors_origins: [origin] });
  const preflight = await call('/leases/x', {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'PATCH',
      'access-control-request-headers': 'content-type, idempotency-key',
    },
  });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get('access-control-allow-methods')).toBe('PATCH');
  const { headers, body } = await post({ group: 'cors' }, { origin });
  expect(headers.get('access-control-allow-origin')).toBe(origin);
  await del(body.lease);
});

it('is described by a document that refers to nothing that it does not have', async () => {
  await limitTo([]);
  const answer = await call('/leases/openapi.json');
  const text = await answer.text();
  expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(leasesOpenApi())));
  for (const [, name = ''] of text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)) {
    expect(leasesOpenApi().components.schemas).toHaveProperty(name);
  }
  expect((await call('/leases/other')).status).toBe(405);
  const head = await call('/leases/openapi.json', { method: 'HEAD' });
  expect(head.status).toBe(200);
});

it('is renewed by its token, however long the names are that its caller chose', async () => {
  const names = ['long-a', 'long-b', 'long-c', 'long-d'];
  const model = 'm'.repeat(256);
  await limitTo(
    names.map((name, at) => {
      const match = { upstreams: ['up'], models: [`${'m'.repeat(at + 1)}*`] };
      return group(name, 1, { match, fairness: { by: ['header:x-team'] } });
    }),
  );
  const wanted = { upstream: 'up', model, agent: '漢'.repeat(200) };
  const { lease, groups } = await leased(wanted, { 'x-team': 't'.repeat(200) });
  expect(groups).toEqual(names);
  expect(await put(lease)).toMatchObject({ status: 200 });
  await del(lease);
});
