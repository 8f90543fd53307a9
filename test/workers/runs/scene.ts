import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { expect } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import type { RunLease, RunsRpc } from '../../../src/contract/rpc/lease-objects-rpc.ts';
import { NO_COOLDOWN } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { call, configure, env, type CallInit } from '../support/worker.ts';

/** An upstream of its own with runs, and a group with a limit over it. */
export interface RunScene {
  readonly id: string;
  readonly group: string;
  readonly strict: Strict;
}

type RunsSceneGroup = NonNullable<ConfigInput['groups']>[number];

export async function runScene(
  id: string,
  limit: number,
  more: Partial<RunsSceneGroup> & {
    readonly upstream?: object;
    readonly others?: RunsSceneGroup[];
  } = {},
): Promise<RunScene> {
  const strict = await strictScope(id, { runs: true, runLimit: limit });
  const { upstream = {}, others = [], ...fields } = more;
  await configure({
    upstreams: [{ id, base_url: strict.url, ...upstream }],
    groups: [
      {
        name: `g-${id}`,
        match: { upstreams: [id] },
        limits: { max_concurrency: limit },
        ...fields,
        holds: { ...NO_COOLDOWN, ...fields.holds },
      },
      ...others,
    ],
  });
  return { id, group: `g-${id}`, strict };
}

export const OWN = { authorization: 'Bearer sk-mine' };

/** Starts a run in the background. */
export function start(
  { id }: RunScene,
  path = '/v1/responses',
  json: object = { model: 'gpt-5', background: true, input: 'x' },
  init: CallInit = {},
): Promise<Response> {
  return call(`/${id}${path}`, { json, ...init, headers: { ...OWN, ...init.headers } });
}

/** Starts a run, and tells its id. */
export async function started(
  scene: RunScene,
  ...how: [path?: string, json?: object]
): Promise<string> {
  const answer = await start(scene, ...how);
  const said = await answer.json<{ id?: string; invocationArn?: string }>();
  expect([answer.status, said]).toMatchObject([200, {}]);
  return said.id ?? said.invocationArn ?? '';
}

/** Asks for a run as its caller would. */
export async function poll({ id }: RunScene, path: string, method = 'GET'): Promise<string> {
  const answer = await call(`/${id}${path}`, { method, headers: OWN });
  const { status } = await answer.json<{ status: string }>();
  return status;
}

export function runsObject({ id }: RunScene): RunsRpc {
  if (env.RUNS === undefined) throw new Error('no runs');
  return env.RUNS.getByName(id);
}

/** Has the object of the runs do what its alarm is for. */
export async function renewNow(scene: RunScene): Promise<void> {
  await runDurableObjectAlarm(runsObject(scene) as never);
}

/** Resets the object of the runs. */
export async function resetRuns(scene: RunScene): Promise<void> {
  try {
    await runInDurableObject(
      runsObject(scene) as never,
      async (_: object, state: DurableObjectState) => {
        await state.storage.sync();
        state.abort('reset by the test');
      },
    );
  } catch {
    // The call that asked for the reset dies with the instance.
  }
}

/** Ids of the runs on disk. */
export function storedIds(scene: RunScene): Promise<string[]> {
  return runInDurableObject(
    runsObject(scene) as never,
    (_: object, { storage }: DurableObjectState) => {
      const rows = storage.sql.exec<{ id: string }>('SELECT id FROM run').toArray();
      return rows.map(({ id }) => id);
    },
  );
}

/** Leases of the first run on disk, as they were told of. */
export function storedLeases(scene: RunScene): Promise<RunLease[]> {
  return runInDurableObject(
    runsObject(scene) as never,
    (_: object, { storage }: DurableObjectState) => {
      const { leases } = storage.sql.exec<{ leases: string }>('SELECT leases FROM run').one();
      return JSON.parse(leases) as RunLease[];
    },
  );
}

/** Number of runs on disk. */
export async function storedRuns(scene: RunScene): Promise<number> {
  return (await storedIds(scene)).length;
}
