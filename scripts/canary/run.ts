import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { AdminClient } from '../../src/admin/client.ts';
import { nameOf } from './call.ts';
import { skipped, type Check, type CheckOutcome } from './check.ts';
import * as groups from './groups.ts';
import type { CanaryPace } from './pace.ts';
import { planOf, type Choice, type Planned } from './plan.ts';
import type { CanaryReport } from './report-schema.ts';
import type { SentRequests } from './sent.ts';
import { openStage, UPSTREAM_LABEL, type OpenStage } from './stage.ts';
import { adminOf, type CanaryTarget } from './target.ts';
import { CheckNotPossible, upstreamUse, type UpstreamUse } from './upstream-use.ts';

export interface RunOptions {
  readonly target: CanaryTarget;
  readonly checks: readonly Check[];
  readonly choice: Choice;
  readonly pace: CanaryPace;
  /** Upstream of the calls that are served. null means that no call is served. */
  readonly upstream: { readonly id: string; readonly model: string } | null;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
  readonly deployed: (withinMs: number) => Promise<void>;
}

/** Label of the group that tests whether calls reach their group. */
const TRY_LABEL = 'try';

/** Runs the selected checks one after the other. The groups of the run are removed in any case. */
export async function runCanary(options: RunOptions): Promise<CanaryReport> {
  const { target, signal, say } = options;
  const run = randomBytes(3).toString('hex');
  const sent: SentRequests = { calls: 0, admin_requests: 0, calls_to_upstream: 0 };
  const admin = adminOf(target, sent);
  const startedAt = new Date();
  const planned = planOf(options.checks, options.choice);
  await removeLeftovers(admin, say);
  const upstream = await upstreamOf(admin, options);
  const closedPath = await closedPathOf(admin, upstream?.id ?? null);
  const stage = openStage({ ...options, run, admin, sent, upstream, closedPath });
  const made: string[] = [];
  const outcomes = new Map<Check, CheckOutcome>();
  let left: string[];
  try {
    await prepare(stage, planned, made);
    for (const { check, leftOut } of planned) {
      if (leftOut !== null) continue;
      outcomes.set(check, await runCheck(check, stage));
      stage.closeCalls();
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    left = await clear(stage, made);
  }
  const checks = planned.map(({ check, leftOut }) => ({
    id: check.id,
    title: check.title,
    ...(outcomes.get(check) ?? skipped(leftOut ?? 'the run was stopped before')),
  }));
  return {
    schema: 'headgate-canary/1',
    url: target.url,
    run,
    started_at: startedAt.toISOString(),
    ended_at: new Date().toISOString(),
    upstream: upstream?.id ?? null,
    checks,
    sent,
    groups_left: left,
    passed: !signal.aborted && left.length === 0 && checks.every(({ result }) => result !== 'fail'),
  };
}

async function removeLeftovers(admin: AdminClient, say: (line: string) => void): Promise<void> {
  for (const name of await groups.leftovers(admin)) {
    say(`removing group ${name} of an earlier run`);
    await groups.removeGroup(admin, name);
  }
}

function upstreamOf(
  admin: AdminClient,
  { target, upstream }: RunOptions,
): Promise<UpstreamUse | null> {
  if (upstream === null) return Promise.resolve(null);
  return upstreamUse(admin, target, upstream.id, upstream.model);
}

/** Chooses a route for the calls of closed groups, which never reach the upstream. */
async function closedPathOf(admin: AdminClient, id: string | null): Promise<string> {
  const answer = await admin('GET /upstreams', { query: { limit: 1_000 } });
  const { upstreams } = groups.bodyOf('Listing upstreams', answer);
  const usable = upstreams.filter(
    (each) => each.enabled && each.dialect === 'openai' && each.openai_at !== null,
  );
  const chosen = usable.find((each) => each.id === (id ?? 'openai')) ?? usable[0];
  if (chosen === undefined) {
    throw new CheckNotPossible('No upstream with the dialect openai is enabled. Enable one.');
  }
  return `/${chosen.id}${chosen.openai_at}/chat/completions`;
}

/** Creates the groups and tests with one call whether calls reach them. */
async function prepare(
  stage: OpenStage,
  planned: readonly Planned[],
  made: string[],
): Promise<void> {
  const make = async (label: string, body: groups.GroupBody): Promise<void> => {
    const group = stage.group(label);
    // The name is recorded first, because a request that fails may still have created the group.
    made.push(group.name);
    await groups.makeGroup(stage.admin, group, body);
  };
  await make(TRY_LABEL, groups.CLOSED);
  for (const { check, leftOut } of planned) {
    if (leftOut !== null) continue;
    for (const [label, body] of Object.entries(check.groups(stage.pace))) await make(label, body);
  }
  if (stage.upstream !== null) await make(UPSTREAM_LABEL, upstreamBody(stage.upstream));
  stage.say(`created ${made.length} groups, waiting until all Workers use them`);
  await delay(stage.pace.settleMs, undefined, { signal: stage.signal });
  const end = await stage.send(stage.group(TRY_LABEL)).ended;
  if (end.reason !== 'busy') {
    throw new CheckNotPossible(
      `A call to a group without slots returned ${nameOf(end)} instead of 429 busy: ${end.text.slice(0, 300)}`,
    );
  }
}

/** A group whose slots are free as soon as their calls end. */
function upstreamBody({ match }: UpstreamUse): groups.GroupBody {
  return {
    match,
    limits: { max_concurrency: 20 },
    holds: { release_cooldown_ms: 0, cancel_cooldown_ms: 0, failure_hold_ms: 0 },
    adaptive: 'off',
  };
}

async function runCheck(check: Check, stage: OpenStage): Promise<CheckOutcome> {
  stage.say(`${check.id}: ${check.title}`);
  try {
    const result = await check.run(stage);
    // A result from calls that were closed during the check is meaningless.
    stage.signal.throwIfAborted();
    return result;
  } catch (error) {
    if (stage.signal.aborted) throw error;
    const found = `The check could not run: ${error instanceof Error ? error.message : String(error)}`;
    return { result: 'fail', found, meaning: 'There is no result.', figures: {} };
  }
}

/** Closes all calls, removes the groups and returns the names of those that remain. */
async function clear(stage: OpenStage, made: readonly string[]): Promise<string[]> {
  stage.close();
  const left: string[] = [];
  for (const name of made) {
    await groups.removeGroup(stage.admin, name).catch(() => left.push(name));
  }
  return left;
}
