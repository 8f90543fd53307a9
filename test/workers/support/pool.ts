import { listDurableObjectIds, runInDurableObject } from 'cloudflare:test';
import { expect, vi } from 'vitest';
import { groupSchema } from '../../../src/contract/config/group.ts';
import type { GroupConfig } from '../../../src/contract/config/config.ts';
import type {
  AcquireAnswer,
  AcquireRequest,
  GroupRpc,
} from '../../../src/contract/rpc/group-rpc.ts';
import type { PoolStatus } from '../../../src/contract/status.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import { passTime } from './time.ts';
import { env, until } from './worker.ts';

export type Granted = Extract<AcquireAnswer, { kind: 'granted' }>;

/** No cool-downs, so that a slot is free the moment it was given back. */
export const NO_COOLDOWN = {
  release_cooldown_ms: 0,
  cancel_cooldown_ms: 0,
  failure_hold_ms: 0,
} as const;

/** A new stub: the old one is of no use once its object was reset. */
export function pool(name: string): GroupRpc {
  return env.GROUPS.getByName(name);
}

type GroupFields = Partial<Omit<GroupConfig, 'limits' | 'queue' | 'holds'>> & {
  readonly limits?: Partial<GroupConfig['limits']>;
  readonly queue?: Partial<GroupConfig['queue']>;
  readonly holds?: Partial<GroupConfig['holds']>;
};

/** Tells a pool what the directory would: a limit, and whatever else is given. */
export async function define(
  name: string,
  slotsMax: number,
  fields: GroupFields = {},
  version = 1,
): Promise<void> {
  const config = groupSchema.parse({
    name,
    limits: { max_concurrency: slotsMax },
    holds: NO_COOLDOWN,
    ...fields,
  });
  await pool(name).reconfigure({ version, routingVersion: 0, config: JSON.stringify(config) });
}

/** An acquire call as the Worker would make it. */
export function request(
  group: string,
  ticketId: string,
  fields: Partial<AcquireRequest> = {},
): AcquireRequest {
  return {
    version: 1,
    group,
    partition: null,
    assumed: null,
    configVersion: 1,
    ticketId,
    attempt: 1,
    enqueuedAt: Date.now(),
    deadlineAt: null,
    wait: true,
    sliceMs: 60_000,
    caller: 'caller',
    agent: null,
    upstream: 'openai',
    model: 'gpt-4o',
    passedUnlimited: 0,
    ...fields,
  };
}

/** Asks, and fails unless a slot is granted. */
export async function take(
  group: string,
  ticketId: string,
  fields: Partial<AcquireRequest> = {},
): Promise<Granted> {
  const answer = await pool(group).acquire(request(group, ticketId, fields));
  if (answer.kind !== 'granted') throw new Error(`not granted: ${JSON.stringify(answer)}`);
  return answer;
}

/** Parks an acquire call, and returns once it stands in the queue. */
export async function queueUp(
  group: string,
  ticketId: string,
  fields: Partial<AcquireRequest> = {},
): Promise<{ readonly answer: Promise<AcquireAnswer> }> {
  const { queued } = await pool(group).status();
  const answer = pool(group).acquire(request(group, ticketId, fields));
  await untilStatus(group, { queued: queued + 1 });
  return { answer };
}

export function untilStatus(group: string, expected: Partial<PoolStatus>): Promise<void> {
  return until(async () => expect(await pool(group).status()).toMatchObject(expected));
}

/**
 * Lets time pass for a pool that is awake all the while: its timers do not run with the clock of a test, and
 * one that wakes a minute late takes its holders for held up, not for dead.
 */
export async function passAwake(group: string, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= AWAKE_EVERY_MS) {
    passTime(Math.min(left, AWAKE_EVERY_MS));
    await pool(group).status();
  }
}

/** Less than a pool with leases sleeps at a time. */
const AWAKE_EVERY_MS = 4_000;

/** Runs inside a pool's object. */
export function inside<Result>(
  name: string,
  work: (instance: GroupRpc, state: DurableObjectState) => Result | Promise<Result>,
): Promise<Result> {
  return runInDurableObject(
    pool(name) as never,
    (instance: object, state: DurableObjectState): Result | Promise<Result> =>
      work(instance as GroupRpc, state),
  );
}

/** Content of a lease's row. */
export interface Row {
  readonly id: string;
  readonly phase: string;
  readonly extendedUntil: number | null;
  /** Absent: 0. */
  readonly extensions?: number;
  readonly coolingUntil: number | null;
}

export function rows(name: string): Promise<Row[]> {
  return inside(name, (_instance, state) => rowsIn(state));
}

export function untilNoRows(name: string): Promise<void> {
  return until(async () => expect(await rows(name)).toEqual([]));
}

/** The tables that an object has made. */
export function tables(name: string): Promise<string[]> {
  return inside(name, (_instance, state) => tablesIn(state));
}

function tablesIn({ storage }: DurableObjectState): string[] {
  const made = storage.sql.exec<{ name: string }>(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\' ORDER BY name`,
  );
  return made.toArray().map(({ name }) => name);
}

function rowsIn(state: DurableObjectState): Row[] {
  if (!tablesIn(state).includes('lease')) return [];
  return state.storage.sql
    .exec<{ data: string }>('SELECT data FROM lease ORDER BY id')
    .toArray()
    .map(({ data }) => JSON.parse(data) as Row);
}

/**
 * Resets a pool's object, as a crash or a deploy would: what was in memory is gone. It waits for rows
 * that are still to be deleted: one that is lost keeps its slot down until the TTL, and a group with
 * nothing but such slots stands still for longer than a test waits.
 */
export function resetPool(name: string): Promise<void> {
  return reset(name, async (instance, state) => {
    const written = async (): Promise<string | null> => {
      const ids = (await instance.leases()).map(({ id }) => id).toSorted();
      const inRows = rowsIn(state).map(({ id }) => id);
      return ids.join() === inRows.toSorted().join() ? ids.join() : null;
    };
    for (;;) {
      const before = await written();
      await state.storage.sync();
      if (before !== null && before === (await written())) return;
      await scheduler.wait(5);
    }
  });
}

/** The same for a pool whose rows somebody else has written: its object does not know them. */
export function resetWritten(name: string): Promise<void> {
  return reset(name, (_instance, state) => state.storage.sync());
}

async function reset(
  name: string,
  prepare: (instance: GroupRpc, state: DurableObjectState) => Promise<void>,
): Promise<void> {
  try {
    await inside(name, async (instance, state) => {
      await prepare(instance, state);
      state.abort('reset by the test');
    });
  } catch {
    // The call that asked for the reset dies with the instance.
  }
}

/** Makes the next answer to an acquire call get lost with its object, after or before its row was written. */
export function loseNextAnswer(isWritten: boolean) {
  // oxlint-disable-next-line typescript/unbound-method -- called with its object below
  const { acquire } = GroupObject.prototype;
  const spy = vi.spyOn(GroupObject.prototype, 'acquire');
  return spy.mockImplementationOnce(async function lost(this: GroupObject, asked) {
    const answer = await acquire.call(this, asked);
    const { ctx } = this as unknown as { ctx: DurableObjectState };
    if (isWritten) await ctx.storage.sync();
    ctx.abort('reset between grant and reply');
    return answer;
  });
}

/** Fails unless every pool that the file used is empty: no slot, no waiter, no row. */
export async function nothingLeaks(): Promise<void> {
  const namespace = env.GROUPS as unknown as DurableObjectNamespace;
  for (const id of await listDurableObjectIds(namespace)) {
    await until(async () => {
      const found = await runInDurableObject(
        namespace.get(id),
        async (instance: object, state: DurableObjectState) => {
          const { group, partition, in_use, cooling, queued } = await (
            instance as GroupRpc
          ).status();
          return { group, partition, in_use, cooling, queued, rows: rowsIn(state).length };
        },
      );
      expect(found).toMatchObject({ in_use: 0, cooling: 0, queued: 0, rows: 0 });
    });
  }
}
