import { listDurableObjectIds, runInDurableObject } from 'cloudflare:test';
import { expect, vi } from 'vitest';
import { groupSchema } from '../../../src/contract/config/group.ts';
import type { GroupConfig } from '../../../src/contract/config/config.ts';
import type {
  AcquireAnswer,
  AcquireRequest,
  GroupRpc,
  ResumeAnswer,
} from '../../../src/contract/rpc/group-rpc.ts';
import { memberId } from '../../../src/core/words/ids.ts';
import { HOLD_SAMPLES_MIN, LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { SERVED, type RefusalKind } from '../../../src/core/words/signal.ts';
import { INVARIANTS } from '../../../src/core/parts/totals.ts';
import type { BoundRow } from '../../../src/core/parts/bound.ts';
import type { PoolStatus } from '../../../src/contract/status.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import {
  acquireRequest,
  heldBy,
  type ClaimFields,
  type GrantedFields,
  type RequestFields,
} from '../../support/requests.ts';
import { passTime } from './time.ts';
import { env, newestVersion, until } from './worker.ts';

export type PoolGranted = Extract<AcquireAnswer, { kind: 'granted' }>;

export { heldBy };

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

/** The name of an object, as a spy on its methods has it among its contexts. */
export function nameOf(object: unknown): string | undefined {
  return (object as { ctx: DurableObjectState }).ctx.id.name;
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

/** An acquire call as a Worker would make it that has the newest configuration. */
export function request(
  group: string,
  ticketId: string,
  fields: RequestFields = {},
): AcquireRequest {
  const { configVersion = Math.max(1, newestVersion()) } = fields;
  return acquireRequest(group, ticketId, { ...fields, configVersion });
}

/** Asks, and fails unless a slot is granted. */
export async function take(
  group: string,
  ticketId: string,
  fields: RequestFields = {},
): Promise<PoolGranted> {
  const answer = await pool(group).acquire(request(group, ticketId, fields));
  if (answer.kind !== 'granted') throw new Error(`not granted: ${JSON.stringify(answer)}`);
  return answer;
}

/** Has a member refuse a call that another one serves then. Returns which did. */
export async function refusedThenServed(
  group: string,
  ticketId: string,
  kind: RefusalKind,
  fields: RequestFields = {},
): Promise<readonly [refused: string, served: string]> {
  const { lease: first, member: by = '' } = await take(group, ticketId, fields);
  await first.report({ ...SERVED, kind }, false);
  await first.release('refused', null);
  const again = { ...fields, attempt: 2, excluded: [by] };
  const { lease: second, member: at = '' } = await take(group, ticketId, again);
  await second.report({ ...SERVED, blamed: [{ member: memberId(by), kind, agoMs: 0 }] }, false);
  await second.release('success', 200);
  return [by, at];
}

/** Lets as many calls end as it takes for a pool to know that they take four seconds each. */
export async function learnSlow(group: string): Promise<void> {
  for (let calls = 0; calls < HOLD_SAMPLES_MIN; calls += 1) {
    const { lease } = await take(group, `slow-${calls}`);
    passTime(4_000);
    await lease.release('success', 200);
  }
}

/** Takes a lease up again, as its holder would. */
export function resume(
  group: string,
  lease: GrantedFields,
  fields: ClaimFields = {},
): Promise<ResumeAnswer> {
  return pool(group).resume(heldBy(group, lease, fields));
}

/** Gives a lease back by its id, as a holder would whose stub is dead. */
export function releaseById(
  group: string,
  lease: GrantedFields,
  fields: ClaimFields = {},
): Promise<void> {
  const held = heldBy(group, lease, fields);
  return pool(group).release(lease.leaseId, 'unused', null, undefined, held);
}

/** Parks an acquire call, and returns once it stands in the queue. */
export async function queueUp(
  group: string,
  ticketId: string,
  fields: RequestFields = {},
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

/** The last row of a pool's bound, wherever it is on disk. Null: there is none. */
export function storedBound(name: string): Promise<BoundRow | null> {
  return inside(name, (_instance, state) => storedBoundIn(state));
}

/** Waits until it is on disk that a pool holds nothing. */
export function untilWrittenEmpty(name: string): Promise<void> {
  return until(async () => expect((await storedBound(name))?.mark ?? 0).toBe(0));
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

export function storedBoundIn(state: DurableObjectState): BoundRow | null {
  const { sql } = state.storage;
  const made = tablesIn(state);
  if (!made.includes('bound')) return null;
  const ring = sql.exec<{ data: string }>('SELECT data FROM bound').toArray();
  const [kept] = sql
    .exec<{ value: string }>(`SELECT value FROM memory WHERE key = 'controls'`)
    .toArray();
  const rows = ring.map(({ data }) => JSON.parse(data) as BoundRow);
  const { bound } = JSON.parse(kept?.value ?? '{}') as { readonly bound?: BoundRow };
  if (bound !== undefined) rows.push(bound);
  return rows.toSorted((one, other) => one.seq - other.seq).at(-1) ?? null;
}

/**
 * Has a pool write what it holds now. Else the slots of calls that have ended may count as held on disk, and be
 * unclaimed for one TTL after a reset: longer than a test waits.
 */
async function written(instance: GroupRpc, { storage }: DurableObjectState): Promise<void> {
  // Operators hear behind a write.
  await instance.revoke('nobody.1');
  await storage.sync();
}

/** Resets a pool's object, as a deploy would, once what it holds is written: what was in memory is gone. */
export function resetPool(name: string): Promise<void> {
  return reset(name, written);
}

/** Resets a pool's object, as a crash would: just what was written until now is on disk. */
export function crashPool(name: string): Promise<void> {
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

/** Makes the next answer to an acquire call get lost with its object, after or before its write arrived. */
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

const KEPT = Object.fromEntries(INVARIANTS.map((invariant) => [invariant, 0]));
/** Slots whose end a reset lost count for one TTL after it. */
const EXPIRED_MS = LEASE_TTL_MS + 8_000;
const EMPTY = { in_use: 0, cooling: 0, unclaimed: 0, queued: 0, mark: 0, violations: KEPT };

/**
 * Fails unless every pool that the file used is empty, no slot and no waiter, and that is on disk, and none has broken
 * a promise since its last reset.
 */
export async function nothingLeaks(): Promise<void> {
  const namespace = env.GROUPS as unknown as DurableObjectNamespace;
  for (const id of await listDurableObjectIds(namespace)) {
    await until(async () => {
      const found = await runInDurableObject(
        namespace.get(id),
        async (instance: object, state: DurableObjectState) => {
          const {
            group,
            partition,
            in_use,
            cooling,
            unclaimed: orphaned,
            queued,
          } = await (instance as GroupRpc).status();
          const { violations_total: violations } = await (instance as GroupRpc).metrics();
          const { mark = 0 } = storedBoundIn(state) ?? {};
          return {
            group,
            partition,
            in_use,
            cooling,
            unclaimed: orphaned,
            queued,
            mark,
            violations,
          };
        },
      );
      expect(found).toMatchObject(EMPTY);
    }, EXPIRED_MS);
  }
}
