import type { Config, GroupConfig } from '../contract/config/config.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import type { CallCounts } from '../contract/history.ts';

import type { Env } from '../env.ts';
import { sumOfCalls } from '../history/points.ts';
import { askPools, readDirectory, usedSince } from '../overview/pools.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { forbiddenFor, refusedKey } from '../routing/key-access.ts';
import { definedGroup, kindOfLimits } from '../routing/implied-groups.ts';
import { membersOf } from '../routing/members.ts';
import { hasPrices, isPriced } from '../routing/group-limits.ts';
import { compileRoutes, GROUPS_PER_CALL_MAX, type Routes } from '../routing/placement.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { logEvent } from '../runtime/log.ts';
import { steadyClock } from '../runtime/async.ts';

const HOUR_MS = 3_600_000;

/** Maximum number of pools queried for their last hour. A change also makes other requests. */
const ASKED_MAX = 200;

/** Maximum number of kinds of calls to check, those with the most calls. */
const KINDS_MAX = 1_000;

const MODELS_NAMED = 5;

/** Reasons for which a configuration rejects calls by their key, upstream and model. */
type Cause =
  | 'key_invalid'
  | 'key_forbidden'
  | 'upstream_unknown'
  | 'too_many_groups'
  | 'price_unknown'
  | 'budget_exhausted';

/** Why a configuration rejects a call, and the responsible group, or null if there is none. */
interface ConfigRefusal {
  readonly reason: Cause;
  readonly group: string | null;
}

/** Calls of the last hour that a change would reject, for one reason. */
interface RefusedCalls {
  readonly reason: Cause;
  /** Group whose budget or keys reject them. null if there is none. */
  readonly group: string | null;
  readonly calls: number;
  /** Keys, upstreams and models of the calls, those with the most calls first. */
  readonly of: CallCounts;
}

export interface LastHourEffect {
  readonly calls: number;
  readonly refused: readonly RefusedCalls[];
  /** Some pools were not queried or did not respond, so there may be more. */
  readonly isPart: boolean;
}

/**
 * Finds the calls of the last hour that pass one configuration and that another one would reject. They are checked as
 * chat calls by their key, upstream and model. Rules about other operations, paths or headers are ignored.
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

export const NOTHING_REFUSED: LastHourEffect = { calls: 0, refused: [], isPart: false };

function sumOf(counts: CallCounts): number {
  return counts.reduce((sum, [, , , calls]) => sum + calls, 0);
}

function mayRefuseMore(before: Config, next: Config): boolean {
  const ruling = ({ keys, teams, upstreams, groups }: Config): string =>
    JSON.stringify([keys, teams, upstreams, groups]);
  return ruling(before) !== ruling(next);
}

/** Queries the pools for the calls of their last hour, and for budgets that the change makes insufficient. */
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
 * Adds up the counts of groups. Each group counts a call of several groups. A model that only the response named is
 * known only to the group in which its costs count.
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

/**
 * Returns the definitions of a group before and after a change of its budget, or null if the budget does not change.
 */
function changedBudget(name: string, before: Config, next: Config) {
  const [was, will] = [definedGroup(before, name), definedGroup(next, name)];
  if (was === undefined || will === undefined) return null;
  const budgetOf = ({ limits }: GroupConfig): string => JSON.stringify(limits.budget_usd);
  if (budgetOf(was) === budgetOf(will)) return null;
  return { before: JSON.stringify(was), after: JSON.stringify(will) };
}

/** Compiles a configuration into a function that returns why it rejects a call, or null if it does not. */
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
    // `change.ts` covers callers without a gateway key, because the directory knows more about them.
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

/** Returns whether the price of a call is known to a group with a budget, at least at one of its members. */
function isPricedIn(
  group: GroupConfig,
  at: { readonly upstream: Upstream; readonly model: string | null },
  upstreams: ReadonlyMap<string, Upstream>,
): boolean {
  // The price of calls without a known model may be known later.
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

/** Describes what a change would reject. Empty if it rejects nothing. */
export function refusalWarnings({ calls: all, refused, isPart }: LastHourEffect): string[] {
  const atLeast = isPart ? 'at least ' : '';
  return refused.map((each) => {
    const { calls } = each;
    const share = `${atLeast}${calls} of ${all} ${all === 1 ? 'call' : 'calls'} of the last hour`;
    return `This change rejects calls that pass today: ${share}. ${causeOf(each)}`;
  });
}

function causeOf({ reason, group, of }: RefusedCalls): string {
  const keys = listed(of, ([key]) => `\`${key}\``);
  const upstreams = listed(of, ([, upstream]) => `\`${upstream}\``);
  switch (reason) {
    case 'price_unknown': {
      const models = listed(
        of,
        ([, upstream, model]) =>
          `${model === null ? 'unknown models' : `\`${model}\``} at \`${upstream}\``,
      );
      const subject = subjectOf(group ?? '');
      return `${subject} has a budget, but the price is unknown for ${models}. Set prices at the upstream, or \`limits.budget_usd.fallback_price\` in the same change. \`{"input":0,"output":0}\` counts such calls as free.`;
    }
    case 'budget_exhausted':
      return `${subjectOf(group ?? '')} has already spent more than this budget (\`budget_exhausted\`).`;
    case 'key_invalid':
      return `Their gateway key becomes invalid (\`key_invalid\`): ${keys}.`;
    case 'key_forbidden':
      return `Their gateway key may not use their groups (\`key_forbidden\`): ${keys}.`;
    case 'upstream_unknown':
      return `Their upstream is removed or disabled (\`upstream_unknown\`): ${upstreams}.`;
    case 'too_many_groups':
      return `They would belong to more than ${GROUPS_PER_CALL_MAX} groups (\`too_many_groups\`): calls at ${upstreams}.`;
  }
}

/** Describes the owner of a budget: a key, a team or a group. */
function subjectOf(group: string): string {
  const kind = kindOfLimits(group);
  return kind === null
    ? `The group \`${group}\``
    : `The ${kind} \`${group.slice(group.indexOf(':') + 1)}\``;
}

/** Lists names with their calls, the most first, and the number of omitted names. */
function listed(of: CallCounts, name: (kind: CallCounts[number]) => string): string {
  const sums = new Map<string, number>();
  for (const kind of of) sums.set(name(kind), (sums.get(name(kind)) ?? 0) + kind[3]);
  const sorted = [...sums].toSorted(([, a], [, b]) => b - a);
  const named = sorted.slice(0, MODELS_NAMED).map(([text, calls]) => `${text} (${calls})`);
  const rest = sorted.length - named.length;
  return `${named.join(', ')}${rest === 0 ? '' : ` and ${rest} more`}`;
}

/** Returns the effect of a change on the last hour. If the pools cannot be queried, the change proceeds without it. */
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
