import { runInDurableObject } from 'cloudflare:test';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import type { FeedEventName } from '../../../src/contract/group-status.ts';
import { feedOf } from '../../../src/env.ts';
import { poolKey } from '../../../src/routing/pool.ts';
import { EventReader } from '../../support/event-reader.ts';
import { NO_COOLDOWN, pool } from '../support/pool.ts';
import { call, configure, env, until } from '../support/worker.ts';

export const TOKEN = { authorization: 'Bearer test-admin-token' };

const readers: EventReader[] = [];

export async function openFeed(
  query = '',
  headers: Record<string, string> = TOKEN,
): Promise<EventReader> {
  const response = await call(`/admin/api/events${query}`, { headers });
  if (response.status !== 200 || response.body === null) throw new Error(await response.text());
  const reader = new EventReader(response.body);
  readers.push(reader);
  return reader;
}

/** Opens the feed, and waits for its snapshot. */
export async function snapshotOf(query = ''): Promise<EventReader> {
  const reader = await openFeed(query);
  await untilEvent(reader, 'snapshot', () => true);
  return reader;
}

/** Waits for an event, and returns its data. */
export async function untilEvent<Data>(
  reader: EventReader,
  name: FeedEventName,
  isMeant: (data: Data) => boolean,
): Promise<Data> {
  const found = () => (reader.of(name) as Data[]).find(isMeant);
  await until(() => {
    expect(found(), `${name} among ${JSON.stringify(reader.events).slice(-600)}`).toBeDefined();
  });
  return found() as Data;
}

/** Words of the feed about groups, as far as these tests look at them. */
export interface Groups {
  readonly groups: readonly { readonly name: string; readonly in_use: number }[];
  readonly gone: readonly string[];
}

/** Waits until the feed says of a group that so many slots are in use. */
export function untilInUse(reader: EventReader, name: string, slots: number): Promise<Groups> {
  return untilEvent(reader, 'groups', ({ groups }: Groups) =>
    groups.some((group) => group.name === name && group.in_use === slots),
  );
}

let at = 0;
/** Groups outlive their tests, so each has a name of its own. */
function names(count: number): string[] {
  at += 1;
  return Array.from({ length: count }, (_, index) => `g${at}-${index}`);
}

export async function withGroups(count: number, slots = 2): Promise<string[]> {
  const all = names(count);
  await configure({
    groups: all.map((name) => ({
      name,
      match: { models: [`${name}-*`] },
      limits: { max_concurrency: slots },
      holds: NO_COOLDOWN,
    })),
  });
  return all;
}

export function keyOf(group: string): string {
  return poolKey({ group, partition: null });
}

/** Asks for the hub's answer to a push of that pool: `nothing` where nobody reads. */
export async function wanted(name: string): Promise<string> {
  const report = { at: 0, configVersion: 0, status: await pool(name).status(), detail: null };
  return feedOf(env).push(keyOf(name), report);
}

/** Resets the hub, as a deploy would. */
export async function resetHub(): Promise<void> {
  try {
    await runInDurableObject(
      feedOf(env) as never,
      (_instance: object, state: DurableObjectState) => {
        state.abort('reset by the test');
      },
    );
  } catch {
    // The call that asked for the reset dies with the instance.
  }
}

/** Every test begins with no dashboard open, and a hub that knows nothing. */
export function usesFeed(): void {
  beforeEach(() => {
    vi.restoreAllMocks();
  });

  afterEach(async () => {
    for (const reader of readers.splice(0)) await reader.close();
    await resetHub();
  });
}
