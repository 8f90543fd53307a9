import type { Config, GroupConfig } from '../contract/config/config.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import type { CallCounts } from '../contract/history.ts';

import type { Env } from '../env.ts';
import { sumOfCalls } from '../history/call-counts.ts';
import { askPools, readDirectory } from '../overview/pools.ts';
import { usedSince } from '../overview/used-pools.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { forbiddenFor, refusedKey } from '../routing/key-access.ts';
import { definedGroup, kindOfLimits } from '../routing/key-groups.ts';
import { membersOf } from '../routing/members.ts';
import { hasPrices, isPriced } from '../routing/metered.ts';
import { compileRoutes, GROUPS_PER_CALL_MAX, type Routes } from '../routing/placement.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { logEvent } from '../runtime/log.ts';
import { steadyClock } from '../runtime/steady-clock.ts';

const HOUR_MS = 3_600_000;

/** Maximum pools that are asked about their last hour. A change makes other requests too. */
const ASKED_MAX = 200;

/** Maximum kinds of calls that are looked at, those with the most calls. */
const KINDS_MAX = 1_000;

/** Maximum models that a warning names. */
const MODELS_NAMED = 5;

/** Reasons for which a configuration refuses calls by their key, upstream and model. */
type Cause =
  | 'key_invalid'
  | 'key_forbidden'
  | 'upstream_unknown'
  | 'too_many_groups'
  | 'price_unknown'
  | 'budget_exhausted';

/** Why a configuration refuses a call, and the group whose rule it is; null: of no group. */
interface ConfigRefusal {
  readonly reason: Cause;
  readonly group: string | null;
}

/** Calls of the last hour that a change would refuse, for one reason. */
interface RefusedCalls {
  readonly reason: Cause;
  /** The group whose budget or keys refuse them. Null: none. */
  readonly group: string | null;
  readonly calls: number;
  /** The keys, upstreams and models of the calls, those with the most first. */
  readonly of: CallCounts;
}

/** The effect of a change on calls like those of the last hour. */
export interface LastHourEffect {
  /** All calls of the last hour. */
  readonly calls: number;
  readonly refused: readonly RefusedCalls[];
  /** Some pools were not asked or did not answer, so there may be more. */
  readonly isPart: boolean;
}

/**
 * Finds the calls of the last hour that pass by one configuration and that another one would refuse. They are judged by
 * their key, upstream and model, as chat calls: no rule about other operations, paths or headers is looked at.
 */
async function refusedByChange(env: Env, before: Config, next: Config): Promise<LastHourEffect> {
  if (!mayRefuseMore(before, next)) return NOTHING_REFUSED;
  const [was, will] = [judgeOf(before, before), judgeOf(next, before)];
  const { counts, spent, isPart } = await askLastHour(env, before, next);
  const byCause = new Map<string, RefusedCalls>(
    spent.map((each) => [`${each.reason} ${each.group}`, each] as const),
  );
  for (const kind of counts) {
    const refusal = will(kind);
    if (refusal === null || was(kind) !== null) continue;
    const cause = `${refusal.reason} ${refusal.group ?? ''}`;
    const { calls, of } = byCause.get(cause) ?? { calls: 0, of: [] };
    byCause.set(cause, { ...refusal, calls: calls + kind[3], of: [...of, kind] });
  }
  const refused = [...byCause.values()].toSorted((a, b) => b.calls - a.calls);
  return { calls: sumOf(counts), refused, isPart };
}

/** No call is refused. */
export const NOTHING_REFUSED: LastHourEffect = { calls: 0, refused: [], isPart: false };

function sumOf(counts: CallCounts): number {
  return counts.reduce((sum, [, , , calls]) => sum + calls, 0);
}

/** Whether a change touches anything that decides which calls are refused. */
function mayRefuseMore(before: Config, next: Config): boolean {
  const ruling = ({ keys, teams, upstreams, groups }: Config): string =>
    JSON.stringify([keys, teams, upstreams, groups]);
  return ruling(before) !== ruling(next);
}

/** Asks the pools for the calls of their last hour, and those whose budget changes whether it is spent then. */
async function askLastHour(env: Env, before: Config, next: Config) {
  const directory = await readDirectory(env);
  const used = await usedSince(env, directory, steadyClock.now() - HOUR_MS);
  const asked = await askPools(env, before, used.slice(0, ASKED_MAX), async (stub, pool) => {
    const change = changedBudget(pool.group, before, next);
    const [counts, preview] = await Promise.all([
      stub.callsOfLastHour(),
      change === null ? null : stub.preview(change.before, change.after),
    ]);
    return { counts, isSpent: preview?.spends_budget === true };
  });
  const ofGroups = [...Map.groupBy(asked, ({ pool }) => pool.group)].map(([group, replies]) => {
    const answers = replies.flatMap((one) => ('answer' in one ? [one.answer] : []));
    const isSpent = answers.some((one) => one.isSpent);
    return { group, isSpent, of: sumOfCalls(answers.map(({ counts }) => counts)) };
  });
  const counts = countedOnce(ofGroups.map(({ of }) => of));
  const spent = ofGroups
    .filter(({ isSpent, of }) => isSpent && of.length > 0)
    .map(({ group, of }) => ({
      reason: 'budget_exhausted' as const,
      group,
      calls: sumOf(of),
      of,
    }));
  const isPart = used.length > ASKED_MAX || asked.some((one) => 'error' in one);
  return { counts: counts.slice(0, KINDS_MAX), spent, isPart: isPart || counts.length > KINDS_MAX };
}

/**
 * Adds up the counts of groups. A call of several groups is counted by each of them, and the model that only its answer named
 * is known to the group that its costs are counted in.
 */
function countedOnce(ofGroups: readonly CallCounts[]): CallCounts {
  const most = new Map<string, CallCounts[number]>();
  const all = new Map<string, number>();
  for (const counts of ofGroups) {
    const own = new Map<string, number>();
    for (const kind of counts) {
      const [caller, upstream, model, calls] = kind;
      const name = JSON.stringify([caller, upstream, model]);
      if (model !== null && (most.get(name)?.[3] ?? 0) < calls) most.set(name, kind);
      const ofUpstream = JSON.stringify([caller, upstream]);
      own.set(ofUpstream, (own.get(ofUpstream) ?? 0) + calls);
    }
    for (const [name, calls] of own) all.set(name, Math.max(all.get(name) ?? 0, calls));
  }
  const named = [...most.values()];
  for (const [caller, upstream, , calls] of named) {
    const name = JSON.stringify([caller, upstream]);
    all.set(name, (all.get(name) ?? 0) - calls);
  }
  const unnamed = [...all].map(([name, calls]): CallCounts[number] => {
    const [caller, upstream] = JSON.parse(name) as [string, string];
    return [caller, upstream, null, calls];
  });
  return [...named, ...unnamed.filter((kind) => kind[3] > 0)].toSorted((a, b) => b[3] - a[3]);
}

/** Finds the definitions of a group before and after a change of its budget. Null: it has none, or the same one. */
function changedBudget(name: string, before: Config, next: Config) {
  const [was, will] = [definedGroup(before, name), definedGroup(next, name)];
  if (was === undefined || will === undefined) return null;
  const budgetOf = ({ limits }: GroupConfig): string => JSON.stringify(limits.budget_usd);
  if (budgetOf(was) === budgetOf(will)) return null;
  return { before: JSON.stringify(was), after: JSON.stringify(will) };
}

/** Compiles a configuration into a judge of calls: why it refuses one; null: it does not. */
function judgeOf(
  config: Config,
  { keys: known }: Config,
): (kind: CallCounts[number]) => ConfigRefusal | null {
  const upstreams = resolveUpstreams(config, BUILT_IN_UPSTREAMS);
  const routes = compileRoutes(config, upstreams);
  const keys = new Map(config.keys.map((key) => [key.id, key]));
  const hashes = new Map(known.map(({ id, hash }) => [id, hash]));
  return ([caller, upstreamId, model]) => {
    const key = keys.get(caller) ?? null;
    if (key === null && hashes.has(caller)) return { reason: 'key_invalid', group: null };
    // Of callers without a gateway key the directory knows more: see `lockout.ts`.
    const refused = key === null ? null : refusedKey(key, hashes.get(caller) ?? null);
    if (refused !== null) return { reason: 'key_invalid', group: null };
    const upstream = upstreams.get(upstreamId);
    if (upstream === undefined) return { reason: 'upstream_unknown', group: null };
    const placements = place(routes, { caller, upstream, model });
    const forbidden = key === null ? null : forbiddenFor(key, placements);
    if (forbidden !== null) return { reason: 'key_forbidden', group: null };
    if (placements.length > GROUPS_PER_CALL_MAX) return { reason: 'too_many_groups', group: null };
    const unpriced = placements.find(
      ({ config: group }) => group !== null && !isPricedIn(group, { upstream, model }, upstreams),
    );
    return unpriced === undefined ? null : { reason: 'price_unknown', group: unpriced.group };
  };
}

function place(
  routes: Routes,
  {
    caller,
    upstream,
    model,
  }: { readonly caller: string; readonly upstream: Upstream; readonly model: string | null },
) {
  return routes.place({
    upstream,
    model,
    operation: 'chat',
    method: 'POST',
    path: null,
    caller,
    keyIds: [caller],
    keyFingerprint: null,
    isOwnKey: false,
    account: null,
    header: () => null,
  });
}

/** Whether a group with a budget knows what a call costs: at one of its members at least, if it has any. */
function isPricedIn(
  group: GroupConfig,
  at: { readonly upstream: Upstream; readonly model: string | null },
  upstreams: ReadonlyMap<string, Upstream>,
): boolean {
  // Of calls whose model nothing has read, the price may well be known.
  if (at.model === null && hasPrices(at.upstream)) return true;
  const members = membersOf(group).filter(({ config }) => config.enabled);
  if (members.length === 0) return isPriced(at, group, null);
  return members.some(({ config, models }) => {
    const upstream = upstreams.get(config.upstream);
    if (upstream === undefined) return false;
    const model = models.get(at.model?.toLowerCase() ?? '') ?? at.model;
    return isPriced({ upstream, model }, group, config);
  });
}

/** Says in sentences what a change would refuse. Empty: nothing. */
export function refusalWarnings({ calls: all, refused, isPart }: LastHourEffect): string[] {
  const atLeast = isPart ? 'at least ' : '';
  return refused.map((each) => {
    const { calls } = each;
    const share = `${atLeast}${calls} of ${all} ${all === 1 ? 'call' : 'calls'} of the last hour`;
    return `This change refuses calls that pass today: ${share}. ${causeOf(each)}`;
  });
}

function causeOf({ reason, group, of }: RefusedCalls): string {
  const keys = listed(of, ([key]) => key);
  const upstreams = listed(of, ([, upstream]) => upstream);
  switch (reason) {
    case 'price_unknown': {
      const models = listed(
        of,
        ([, upstream, model]) => `${model ?? 'unknown models'} at ${upstream}`,
      );
      const subject = subjectOf(group ?? '');
      return `${subject} has a budget, and the price is not known of ${models}. Set prices at the upstream, or limits.budget_usd.fallback_price there in the same change; {"input":0,"output":0} counts such calls as free.`;
    }
    case 'budget_exhausted':
      return `${subjectOf(group ?? '')} has spent more than this budget already (budget_exhausted).`;
    case 'key_invalid':
      return `Their gateway key opens nothing any more (key_invalid): ${keys}.`;
    case 'key_forbidden':
      return `Their gateway key may not use the groups that they go to (key_forbidden): ${keys}.`;
    case 'upstream_unknown':
      return `They go to an upstream that is removed or switched off (upstream_unknown): ${upstreams}.`;
    case 'too_many_groups':
      return `They would belong to more than ${GROUPS_PER_CALL_MAX} groups (too_many_groups): calls at ${upstreams}.`;
  }
}

/** Names the owner of a budget: a key, a team or a group. */
function subjectOf(group: string): string {
  const kind = kindOfLimits(group);
  return kind === null
    ? `The group "${group}"`
    : `The ${kind} "${group.slice(group.indexOf(':') + 1)}"`;
}

/** Lists names with their calls, the most first, and says how many are left out. */
function listed(of: CallCounts, name: (kind: CallCounts[number]) => string): string {
  const sums = new Map<string, number>();
  for (const kind of of) sums.set(name(kind), (sums.get(name(kind)) ?? 0) + kind[3]);
  const sorted = [...sums].toSorted(([, a], [, b]) => b - a);
  const named = sorted.slice(0, MODELS_NAMED).map(([text, calls]) => `${text} (${calls})`);
  const rest = sorted.length - named.length;
  return `${named.join(', ')}${rest === 0 ? '' : ` and ${rest} more`}`;
}

/** The last hour as it counts for a change. If the pools cannot be asked, the change goes on without. */
export async function refusedOrNothing(
  env: Env,
  before: Config,
  next: Config,
): Promise<LastHourEffect> {
  try {
    return await refusedByChange(env, before, next);
  } catch (error) {
    logEvent('last_hour_unknown', { error: String(error) });
    return NOTHING_REFUSED;
  }
}
