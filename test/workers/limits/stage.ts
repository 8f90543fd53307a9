import { expect } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import type { PoolStatus } from '../../../src/contract/status.ts';
import { NO_COOLDOWN, pool, untilStatus } from '../support/pool.ts';
import { strictScope, type Settings, type Strict } from '../support/strict.ts';
import { passTime } from '../support/time.ts';
import { configure, open, until, type WorkerOpenCall } from '../support/worker.ts';

type LimitsStageGroup = NonNullable<ConfigInput['groups']>[number];
type LimitsStageUpstream = NonNullable<ConfigInput['upstreams']>[number];

/** One upstream and one group in front of it. */
export interface LimitsStage {
  readonly strict: Strict;
  /** The upstream's id. What an isolate remembers of upstreams outlives a test, so each has its own. */
  readonly upstream: string;
  readonly group: string;
  /** Path of the chat calls. */
  readonly chat: string;
}

/** Settings of a test that differ from the rest. */
export interface StageFields {
  readonly settings?: Settings;
  readonly group?: Partial<LimitsStageGroup> | undefined;
  readonly upstream?: Partial<LimitsStageUpstream> | undefined;
}

let stages = 0;

/** Sets up an upstream, whose id says whose headers are known of it, and a group of 8 slots. */
export async function newStage({
  settings,
  group,
  upstream,
}: StageFields = {}): Promise<LimitsStage> {
  stages += 1;
  const strict = await strictScope('limits', settings);
  const id = upstream?.id ?? `up-${stages}`;
  const stage = {
    strict,
    upstream: id,
    group: `limits-${stages}`,
    chat: `/${id}/v1/chat/completions`,
  };
  await configureStage(stage, { group, upstream });
  return stage;
}

/** Describes the upstream and the group anew. */
export async function configureStage(
  stage: LimitsStage,
  { group, upstream }: Pick<StageFields, 'group' | 'upstream'>,
): Promise<void> {
  const { strict, upstream: id } = stage;
  await configure({
    upstreams: [{ base_url: strict.url, ...upstream, id }],
    groups: [groupOf(stage, group)],
  });
}

function groupOf(
  { group: name, upstream }: LimitsStage,
  fields: Partial<LimitsStageGroup> = {},
): LimitsStageGroup {
  const { limits, ...rest } = fields;
  return {
    name,
    match: { upstreams: [upstream] },
    limits: { max_concurrency: 8, ...limits },
    holds: NO_COOLDOWN,
    ...rest,
  };
}

interface LimitsStageReply {
  readonly model?: string;
  readonly path?: string;
  readonly stream?: boolean;
  readonly headers?: Record<string, string>;
}

/** Sends a chat call. Its label is its prompt, which may hold directives for the upstream. */
export function send(
  stage: LimitsStage,
  label: string,
  said: LimitsStageReply = {},
): WorkerOpenCall {
  const { model = 'm', path = stage.chat, stream = false, headers = {} } = said;
  const messages = [{ role: 'user', content: label }];
  return open(path, label, { json: { model, max_tokens: 9, stream, messages }, headers });
}

/** Starts a stream that goes silent after its first chunk, and waits until it is there. */
export async function streaming(
  stage: LimitsStage,
  label: string,
  said: LimitsStageReply = {},
): Promise<WorkerOpenCall> {
  const headers = { 'x-strict-silent-after-chunks': '1', ...said.headers };
  const one = send(stage, label, { ...said, stream: true, headers });
  expect((await one.response).status).toBe(200);
  return one;
}

/** Lets streams come to their end, also those that go silent only in a moment. */
export async function finish(
  { strict }: LimitsStage,
  ...calls: readonly WorkerOpenCall[]
): Promise<void> {
  const ends: string[] = [];
  const all = Promise.all(calls.map(async ({ end }) => ends.push(await end)));
  await until(async () => {
    await strict.resume();
    expect(ends).toEqual(calls.map(() => 'done'));
  });
  await all;
}

/** Reads what a caller learns from the head of an answer. */
export async function reportedBy({ response }: WorkerOpenCall) {
  const { status, headers } = await response;
  return {
    status,
    tries: headers.get('headgate-tries'),
    reason: headers.get('headgate-reason'),
    shouldRetry: headers.get('x-should-retry'),
  };
}

/** Expects the answer to a caller that was served after so many tries. */
export function served(attempts: number): Awaited<ReturnType<typeof reportedBy>> {
  return { status: 200, tries: String(attempts), reason: null, shouldRetry: null };
}

export function statusOf({ group }: LimitsStage): Promise<PoolStatus> {
  return pool(group).status();
}

/** Waits until the group's status shows something. */
export function untilGroup({ group }: LimitsStage, expected: Partial<PoolStatus>): Promise<void> {
  return untilStatus(group, expected);
}

/** Lets time pass for Headgate, and the group notice it. Timers run on as they did. */
export async function later(stage: LimitsStage, ms: number): Promise<void> {
  passTime(ms);
  await statusOf(stage);
}

export function untilArrived({ strict }: LimitsStage, total: number): Promise<void> {
  return until(async () => expect((await strict.stats()).total).toBe(total));
}

/** The labels of the calls that the upstream got, in the order in which they arrived there. */
export async function arrived({ strict }: LimitsStage): Promise<(string | null)[]> {
  return (await strict.stats()).arrivals.map(({ label }) => label);
}

/** How many milliseconds the group is still paused; 0: it is not. */
export function pausedMs({ paused_until: until_ }: PoolStatus): number {
  return until_ === null ? 0 : Date.parse(until_) - Date.now();
}

/** Sets up an upstream that enforces these limits and reports them in its provider's headers. */
export function reporting(rates: Settings, fields: StageFields = {}): Promise<LimitsStage> {
  const settings = { rates: { '*': rates }, sendsLimitHeaders: true, ...fields.settings };
  return newStage({ ...fields, settings });
}

/** Sends so many calls by some callers, each one after the other, and reads what the upstream refused. */
export async function refusedOf(stage: LimitsStage, callers: number, calls: number, said = {}) {
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let at = 0; at < calls / callers; at += 1) {
        expect(await reportedBy(send(stage, `${caller}-${at}`, said))).toMatchObject({
          status: 200,
        });
      }
    }),
  );
  const { refused, total } = await stage.strict.stats();
  return [refused, total];
}
