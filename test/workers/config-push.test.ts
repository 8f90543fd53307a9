// The directory tells all of its pools of every change: in rounds, over a reset, and past pools that fail. The pools
// are stand-ins that write down what they hear.
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { configSchema, type ConfigInput } from '../../src/contract/config/config.ts';
import type { DirectoryRpc } from '../../src/contract/rpc/directory-rpc.ts';
import type { GroupDefinition } from '../../src/contract/rpc/group-rpc.ts';
import { DirectoryObject } from '../../src/directory/directory-object.ts';
import { ConfigPush } from '../../src/directory/config-push.ts';
import { steadyClock, Timers } from '../../src/runtime/async.ts';
import { RuntimeTimers } from '../support/runtime-timers.ts';
import { passTime } from './support/time.ts';
import { env, until } from './support/worker.ts';

const POOLS = 1_500;
const A_ROUND_MAX = 400;

/** The version that each pool heard of last, by its name. */
const heard = new Map<string, number>();
/** Pools that fail, and how often yet. */
const failing = new Map<string, number>();
let pushes = 0;

class TellingStandIn {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  async reconfigure({ version }: GroupDefinition): Promise<void> {
    pushes += 1;
    await Promise.resolve();
    const left = failing.get(this.#name) ?? 0;
    failing.set(this.#name, left - 1);
    if (left > 0) throw new Error('this pool is out of reach');
    heard.set(this.#name, version);
  }
}

let name = '';
const directory = (): DirectoryRpc => env.DIRECTORY.getByName(name);

function inside<Result>(
  work: (instance: DirectoryObject, state: DurableObjectState) => Result | Promise<Result>,
): Promise<Result> {
  return runInDurableObject(directory() as never, work as never);
}

let mocks: { mockRestore(): void }[] = [];
let takeBack: () => Promise<void>;

beforeEach(async ({ task }) => {
  name = task.name;
  heard.clear();
  failing.clear();
  pushes = 0;
  // One environment is handed to all instances.
  const groups = await inside((instance) => {
    const { env: own } = instance as unknown as { env: { GROUPS: unknown } };
    const { GROUPS } = own;
    own.GROUPS = { getByName: (pool: string) => new TellingStandIn(pool) };
    return () => {
      own.GROUPS = GROUPS;
    };
  });
  takeBack = async () => groups();
});

afterEach(async () => {
  await takeBack();
  for (const mock of mocks) mock.mockRestore();
  mocks = [];
});

/** Lists so many partitions of two groups, as if each had had a success. */
function listPools(count: number): Promise<void> {
  return inside((_instance, { storage }) => {
    storage.sql.exec(
      `WITH RECURSIVE n (at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM n WHERE at + 1 < ?)
       INSERT INTO pools (group_name, object_name, jurisdiction, partition_key)
       SELECT 'auto:' || (at % 2), 'auto:' || (at % 2) || '#p' || at, '', 'p' || at FROM n`,
      count,
    );
  });
}

/** Makes a change that touches none of them. */
async function changeSomething(expected: number, more: ConfigInput = {}): Promise<void> {
  const config = configSchema.parse({ cors_origins: [`https://${expected}.test`], ...more });
  expect(await directory().replace(config, expected, 'test', 'change')).toMatchObject({
    kind: 'replaced',
  });
}

/** Pools that have heard of a version. */
const heardOf = (version: number): number =>
  [...heard.values()].filter((one) => one === version).length;

const alarmOf = (): Promise<number | null> => inside((_, { storage }) => storage.getAlarm());

it('all of them, some hundred in an invocation, over a reset and with some that fail', async () => {
  await listPools(POOLS);
  for (let at = 0; at < POOLS; at += 100) failing.set(`auto:${at % 2}#p${at}`, 2);
  // oxlint-disable-next-line typescript/unbound-method -- called with its object below
  const { alarm } = DirectoryObject.prototype;
  let isDead = true;
  const rounds: number[] = [];
  const going = vi.spyOn(DirectoryObject.prototype, 'alarm');
  mocks.push(going);
  going.mockImplementation(async function round(this: DirectoryObject) {
    if (isDead) return;
    const before = pushes;
    await alarm.call(this);
    rounds.push(pushes - before);
  });

  await changeSomething(0);
  await until(() => expect(pushes).toBe(A_ROUND_MAX));
  // The instance ends before the next round, and its successor goes on where it was.
  await abortAllDurableObjects();
  isDead = false;
  await directory().snapshot(null);

  await until(() => expect(heardOf(1)).toBe(POOLS));
  expect(rounds.length).toBeGreaterThanOrEqual(3);
  expect(Math.max(...rounds)).toBeLessThanOrEqual(A_ROUND_MAX);
  // Each once, and those that failed three times, but for what the first instance had no time to write down.
  expect(pushes).toBeGreaterThanOrEqual(POOLS + 30);
  expect(pushes).toBeLessThanOrEqual(POOLS + 30 + A_ROUND_MAX);
  await until(async () => expect(await alarmOf()).toBeNull());
});

it('a change that comes while they are told is told to all as well', async () => {
  await listPools(2 * A_ROUND_MAX);
  await changeSomething(0);
  await changeSomething(1);
  await until(() => expect(heardOf(2)).toBe(2 * A_ROUND_MAX));
  await until(async () => expect(await alarmOf()).toBeNull());
});

it('a pool that hangs keeps nobody else waiting, and is told when it is back', async () => {
  await listPools(200);
  // oxlint-disable-next-line typescript/unbound-method -- called with its object below
  const { reconfigure } = TellingStandIn.prototype;
  let hangs = true;
  const spy = vi.spyOn(TellingStandIn.prototype, 'reconfigure');
  mocks.push(spy);
  spy.mockImplementation(function hang(this: TellingStandIn, definition) {
    // Its answer is lost, whoever else is told.
    if (hangs && definition.config === null && pushes++ % 200 === 0) return new Promise(() => {});
    return reconfigure.call(this, definition);
  });
  await changeSomething(0);
  await until(() => expect(heardOf(1)).toBe(199));
  hangs = false;
  await until(() => expect(heardOf(1)).toBe(200));
});

// The last one, because alarms go by another clock than the one that is set forward here.
it('one that fails again and again is told every 4 s, while copies are of before', async () => {
  await listPools(1);
  failing.set('auto:0#p0', 1_000);
  await changeSomething(0);
  for (let attempts = 1; attempts < 10; attempts += 1) {
    await until(() => expect(pushes).toBeGreaterThanOrEqual(attempts));
    passTime(4_000);
    await inside((instance) => instance.alarm());
  }
  expect(pushes).toBeGreaterThanOrEqual(10);
  expect(((await alarmOf()) ?? Infinity) - Date.now()).toBeLessThanOrEqual(4_000);
  failing.clear();
  passTime(4_000);
  await inside((instance) => instance.alarm());
  expect(heardOf(1)).toBe(1);
});

it.each([5_000, 60_000, 600_000])(
  'in one process a pool that failed is told again in its time, though the wall clock was set back by %i ms',
  async (stepMs) => {
    const runtime = new RuntimeTimers();
    runtime.install();
    mocks.push({ mockRestore: () => vi.restoreAllMocks() });
    const pool = { group: 'g', partition: null, jurisdiction: null };
    let isReached = false;
    let reportedAt: number | null = null;
    const reporting = new ConfigPush({
      list: { behind: () => (reportedAt === null ? [pool] : []), noteReceived: () => {} } as never,
      // It goes by the wall clock, so it comes late.
      alarm: { set: () => {}, clear: () => {} },
      version: () => 2,
      isResting: () => false,
      isOneProcess: true,
      after: new Timers(steadyClock).after,
      waitUntil: () => {},
      notify: async () => {
        if (!isReached) throw new Error('this pool is out of reach');
        reportedAt = runtime.passedMs;
        return true;
      },
    });
    await reporting.begin();
    isReached = true;
    runtime.setBack(stepMs);
    runtime.pass(2_000);
    expect(reportedAt).toBe(1_000);
  },
);
