// The live feed of the dashboards: what comes when, and who is told.
import { describe, expect, it, vi } from 'vitest';
import { FEED_EVENTS, type FeedEventName } from '../../../src/contract/group-status.ts';
import { SERVED } from '../../../src/core/words/signal.ts';
import { directoryOf } from '../../../src/env.ts';
import { FeedObject } from '../../../src/feed/feed-object.ts';
import type { EventReader } from '../../support/event-reader.ts';
import { take } from '../support/pool.ts';
import { admin, call, change, env, until } from '../support/worker.ts';
import {
  keyOf,
  openFeed,
  snapshotOf,
  TOKEN,
  untilEvent,
  untilInUse,
  usesFeed,
  withGroups,
  type Groups,
} from './feed-scene.ts';

usesFeed();

function withoutAges(value: unknown): unknown {
  const isAge = (name: string) => name === 'idle_ms' || name === 'oldest_wait_ms';
  return JSON.parse(JSON.stringify(value, (name, each: unknown) => (isAge(name) ? 0 : each)));
}

describe('a stream', () => {
  it('begins with everything, as GET /status answers, and goes on with beats', async () => {
    const [name = ''] = await withGroups(3);
    const held = await take(name, 'first');
    const reader = await snapshotOf();
    const { json } = await admin('GET', '/status');
    expect(withoutAges(reader.of('snapshot')[0])).toEqual(withoutAges(json));
    expect(reader.of('snapshot')[0].groups[0]).toMatchObject({ name, in_use: 1 });
    expect(reader.retryMs).toBe(1_000);
    await until(() => expect(reader.of('beat').length).toBeGreaterThan(2));
    await held.lease.release('success', 200);
    await untilInUse(reader, name, 0);
    for (const { name: event, data } of reader.events) {
      expect(FEED_EVENTS[event as FeedEventName].safeParse(data).error).toBeUndefined();
    }
  });

  it('is read with a session, and by a viewer', async () => {
    await withGroups(1);
    const made = await change('POST', '/admin-keys', { id: 'looker', role: 'viewer' });
    const signedIn = await call('/admin/api/session', { json: { token: made.json.secret } });
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
    const reader = await openFeed('', { cookie });
    const { groups } = await untilEvent<Groups>(reader, 'snapshot', () => true);
    expect(groups).toHaveLength(1);
  });

  it.each([
    ['without a token', '', {}, 401],
    ['with a token that nobody has', '', { authorization: 'Bearer wrong' }, 401],
    ['with a query that nobody knows', '?name=x', TOKEN, 422],
    ['of no group', '?group=', TOKEN, 422],
  ])('is not opened %s', async (_what, query, headers, status) => {
    const response = await call(`/admin/api/events${query}`, { headers });
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toContain('application/problem+json');
    await response.body?.cancel();
  });

  it('is not kept by anybody on the way', async () => {
    const response = await call('/admin/api/events', { headers: TOKEN });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
    await response.body?.cancel();
  });
});

describe('changes', () => {
  it('come without being asked for: only groups that changed', async () => {
    const [first = '', second = ''] = await withGroups(3);
    const reader = await snapshotOf();
    const held = await take(first, 'a');
    const event = await untilInUse(reader, first, 1);
    expect(event.groups.map(({ name }) => name)).toEqual([first]);
    expect(event.gone).toEqual([]);
    const other = await take(second, 'b');
    expect((await untilInUse(reader, second, 1)).groups.map(({ name }) => name)).toEqual([second]);
    await held.lease.release('success', 200);
    await other.lease.release('success', 200);
    await untilInUse(reader, first, 0);
    await untilInUse(reader, second, 0);
  });

  it('of many calls come together, and cost few pushes', async () => {
    const [name = ''] = await withGroups(1);
    const reader = await snapshotOf();
    const push = vi.spyOn(FeedObject.prototype, 'push');
    const startedAt = Date.now();
    for (let index = 0; index < 100; index += 1) {
      const { lease } = await take(name, `call-${index}`);
      await lease.release('success', 200);
    }
    await untilEvent(reader, 'groups', ({ groups }: { groups: { granted_total: number }[] }) =>
      groups.some((group) => group.granted_total === 100),
    );
    // One a second, and one at either end.
    const own = push.mock.calls.filter(([key]) => key === keyOf(name));
    expect(own.length).toBeLessThanOrEqual((Date.now() - startedAt) / 1_000 + 2);
  });

  it('of the configuration are told, with groups that came and groups that went', async () => {
    const [first = '', second = ''] = await withGroups(2);
    const reader = await snapshotOf();
    const { json } = await change('PUT', '/groups/newcomer', { limits: { max_concurrency: 1 } });
    await change('DELETE', `/groups/${second}`);
    await untilEvent(
      reader,
      'version',
      ({ version }: { version: number }) => version >= json.version,
    );
    await untilEvent(reader, 'groups', ({ gone }: Groups) => gone.includes(second));
    const held = await take('newcomer', 'a');
    await untilInUse(reader, 'newcomer', 1);
    await held.lease.release('success', 200);
    expect(reader.of('snapshot')[0].groups.map(({ name }: { name: string }) => name)).toContain(
      first,
    );
  });

  it('that the operator makes are told by the pool at once', async () => {
    const [name = ''] = await withGroups(1);
    const reader = await snapshotOf();
    await change('POST', `/groups/${name}/pause`);
    const reported = await untilEvent<{ groups: { name: string; paused: boolean }[] }>(
      reader,
      'groups',
      ({ groups }) => groups.some(({ paused }) => paused),
    );
    expect(reported.groups).toMatchObject([{ name, paused: true }]);
  });

  it('go to all dashboards as the same bytes', async () => {
    const [name = ''] = await withGroups(1);
    const [one, two] = [await snapshotOf(), await snapshotOf()];
    const held = await take(name, 'a');
    await Promise.all([untilInUse(one, name, 1), untilInUse(two, name, 1)]);
    await held.lease.release('success', 200);
    await Promise.all([untilInUse(one, name, 0), untilInUse(two, name, 0)]);
    const rawOf = (reader: EventReader) =>
      reader.events.filter((event) => event.name === 'groups').map(({ raw }) => raw);
    expect(rawOf(one).slice(-2)).toEqual(rawOf(two).slice(-2));
  });

  it('of before are told behind the snapshot: the last 50, of 200 that are kept', async () => {
    const [name = ''] = await withGroups(1);
    const note = (id: string, at: string, more = {}) =>
      directoryOf(env).noteWarning({
        id,
        at,
        kind: 'member_out',
        group: name,
        partition: null,
        message: id,
        figures: {},
        ...more,
      });
    for (let one = 100; one < 310; one += 1) await note(`w${one}`, `2036-01-01T00:00:00.${one}Z`);
    const reader = await snapshotOf();
    type EventsReport = { readonly warnings: readonly { readonly id: string }[] };
    const { warnings } = await untilEvent<EventsReport>(reader, 'warnings', () => true);
    expect(warnings.map(({ id }) => id)).toEqual(
      Array.from({ length: 50 }, (_, index) => `w${309 - index}`),
    );
    expect(reader.events.map(({ name: event }) => event).indexOf('warnings')).toBeGreaterThan(
      reader.events.map(({ name: event }) => event).indexOf('snapshot'),
    );
    const cleared_at = '2036-01-01T00:01:00.000Z';
    await note('w309', '2036-01-01T00:00:00.309Z', { cleared_at });
    // The directory keeps 200 over all groups, each once.
    const { json } = await admin('GET', '/warnings?limit=200');
    expect(json.warnings).toHaveLength(200);
    expect(json.warnings[0]).toMatchObject({ id: 'w309', cleared_at });
    expect(json.warnings.at(-1)).toMatchObject({ id: 'w110' });
  });

  it('raise warnings at once', async () => {
    const [name = ''] = await withGroups(1);
    const reader = await snapshotOf();
    const { lease } = await take(name, 'a');
    await lease.report({ ...SERVED, kind: 'quota' }, false);
    const warning = await untilEvent(
      reader,
      'warning',
      ({ group }: { group: string }) => group === name,
    );
    const { json } = await admin('GET', `/groups/${name}/warnings`);
    expect(warning).toEqual(json.warnings[0]);
    await lease.release('refused', 429);
  });
});
