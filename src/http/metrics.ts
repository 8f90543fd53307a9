import type { Context } from 'hono';
import { counter, gauge, histogram, type MetricFamily } from '../contract/metric.ts';
import { GAUGES, MEMBER_GAUGES, METRICS_ONLY, type GaugeRow } from '../contract/gauges.ts';
import { BOUNDS_MS, type Histogram } from '../core/parts/totals.ts';
import type { PoolMetrics } from '../contract/rpc/feed-rpc.ts';
import type { PoolStatus, ScopeStatus } from '../contract/status.ts';
import type { Config, GroupConfig } from '../contract/config/config.ts';
import { definedGroup } from '../routing/implied-groups.ts';
import type { PlacedPool } from '../routing/pool.ts';
import { scopeKindOf } from '../routing/scopes-shown.ts';
import { askAwake, readDirectory, type PoolReply, type Directory } from '../overview/pools.ts';
import { directoryOf, type Env } from '../env.ts';
import type { RefusalTotal } from '../contract/reasons.ts';
import { howToSet, readSecret, secretFault, isSameHash, secretHash } from '../runtime/secrets.ts';
import { POOL_IDLE_MS, type GroupRpc } from '../contract/rpc/group-rpc.ts';
import { ATTENTION_RULES } from '../contract/status-words.ts';
import { attentionFrom } from '../overview/all-groups.ts';
import { refuseBlocked, slowDown } from '../admin/access.ts';
import { ProblemError, problemResponse } from '../admin/context.ts';

/**
 * `GET /metrics`: the samples of all pools in the text format of Prometheus. Families that are not the value of one row
 * of src/contract/gauges.ts come first.
 */

export const CONFIG_VERSION = gauge('config_version', 'Version of the configuration.');
export const POOLS = gauge('pools', 'Pools that were queried.');
export const POOLS_LEFT_OUT = gauge('pools_left_out', 'Pools beyond the limit of one scrape.');
export const ATTENTION = gauge('attention', 'Entries of the attention list, by rule.');
export const POOL_UP = gauge('pool_up', 'Whether the pool responded.', 'min');

export const SLOTS_LIMIT = gauge(
  'slots_limit',
  'Slots that may be in use, as configured or learned. Limits learned for only some calls of a configured group do not count.',
);
export const SLOTS_LIMIT_CONFIGURED = gauge('slots_limit_configured', 'Configured slots.');
export const PAUSED = gauge(
  'paused',
  'Whether all calls are paused, by the cause in `by`. Pauses of only some calls count in headgate_scopes_stopped.',
  'max',
);
export const BREAKER = gauge(
  'breaker_state',
  'Whether the breaker of all calls is in this state. Breakers of only some calls count in headgate_scopes_stopped.',
);
export const SCOPES_STOPPED = gauge(
  'scopes_stopped',
  'Scopes whose calls are held back, by kind of scope and cause.',
);
export const RATE_LIMIT = gauge('rate_limit', 'Limit of requests or tokens.');
export const RATE_LEFT = gauge('rate_left', 'Requests or tokens available now under a limit.');
export const SPENT = gauge('budget_spent_usd', 'Spend in the current UTC period.');
export const BUDGET = gauge('budget_limit_usd', 'Budget of a UTC period.');
export const RESERVED = gauge('budget_reserved_usd', 'Estimated cost of calls in flight.');

export const MEMBER_LIMIT = gauge('member_slots_limit', 'Slots that may be in use at a member.');
export const MEMBER_OUT = gauge(
  'member_out',
  'Whether a member is ejected. Disabled members do not count.',
  'max',
);
export const AFFINITY = counter('affinity', 'Calls with affinity to a member, by outcome.');

export const REFUSED = counter(
  'refusals',
  'Calls that Headgate rejected, by reason, in groups or before they reached one.',
);

export const WAIT = histogram('wait_seconds', 'Queueing time of granted calls.');
export const HOLD = histogram('hold_seconds', 'Time from the grant of a lease to its end.');

type MetricRow = Pick<GaugeRow, 'shape' | 'metric' | 'label' | 'labels'>;

export type Labels = Readonly<Record<string, string>>;

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

const JOINS = {
  sum: (a: number, b: number) => a + b,
  max: (a: number, b: number) => Math.max(a, b),
  min: (a: number, b: number) => Math.min(a, b),
};

const SUFFIX = { gauge: '', counter: '_total' } as const;

/**
 * Collects samples and writes them in the text format. Samples of the same series are joined, which combines pools with
 * the same labels.
 */
export class Exposition {
  /** By family, in the order of the first sample, and then by the text before the value. */
  readonly #samples = new Map<MetricFamily, Map<string, number>>();

  add(
    family: MetricFamily & { readonly type: keyof typeof SUFFIX },
    labels: Labels,
    value: number,
  ): void {
    this.#put(family, `${family.name}${SUFFIX[family.type]}${labelsText(labels)}`, value);
  }

  /** Adds one series for each key of `values`. The key is the value of the label `label`. */
  addEach(
    family: MetricFamily & { readonly type: keyof typeof SUFFIX },
    labels: Labels,
    label: string,
    values: Readonly<Record<string, number>>,
  ): void {
    for (const [key, value] of Object.entries(values)) {
      this.add(family, { ...labels, [label]: key }, value);
    }
  }

  /** Adds the samples of a table of gauges. Rows without a metric or a value have none. */
  addRows(
    rows: Readonly<Record<string, MetricRow>>,
    labels: Labels,
    figures: Readonly<Record<string, unknown>>,
  ): void {
    for (const [name, { shape, metric, label, labels: fixed }] of Object.entries(rows)) {
      const value = figures[name];
      if (metric === undefined || value === undefined || value === null) continue;
      const own = { ...labels, ...fixed };
      if (label !== undefined) this.addEach(metric, own, label, value as Record<string, number>);
      else this.add(metric, own, shape === 'ms' ? Number(value) / 1_000 : Number(value));
    }
  }

  /** Adds a histogram of durations, in seconds by Prometheus convention. */
  addHistogram(family: MetricFamily, labels: Labels, { counts, sumMs }: Readonly<Histogram>): void {
    let cumulative = 0;
    for (const [bucket, count] of counts.entries()) {
      cumulative += count;
      const boundMs = BOUNDS_MS[bucket];
      const le = boundMs === undefined ? '+Inf' : String(boundMs / 1_000);
      this.#put(family, `${family.name}_bucket${labelsText({ ...labels, le })}`, cumulative);
    }
    this.#put(family, `${family.name}_sum${labelsText(labels)}`, sumMs / 1_000);
    this.#put(family, `${family.name}_count${labelsText(labels)}`, cumulative);
  }

  toResponse(): Response {
    return new Response(this.#text(), {
      headers: { 'content-type': CONTENT_TYPE, 'cache-control': 'no-store' },
    });
  }

  #text(): string {
    const lines: string[] = [];
    for (const [family, samples] of this.#samples) {
      const { type, help } = family;
      const name = type === 'histogram' ? family.name : `${family.name}${SUFFIX[type]}`;
      lines.push(`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`);
      for (const [series, value] of samples) lines.push(`${series} ${valueText(value)}`);
    }
    return `${lines.join('\n')}\n`;
  }

  #put(family: MetricFamily, series: string, value: number): void {
    const samples = this.#samples.get(family) ?? new Map<string, number>();
    this.#samples.set(family, samples);
    const known = samples.get(series);
    samples.set(series, known === undefined ? value : JOINS[family.join](known, value));
  }
}

function labelsText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeLabel(value: string): string {
  return value
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\n', String.raw`\n`);
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', String.raw`\\`).replaceAll('\n', String.raw`\n`);
}

function valueText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? 'NaN' : `${value < 0 ? '-' : '+'}Inf`;
}

/** Maximum number of partitions of a group with their own series. The others share one set of series. */
export const PARTITIONS_MAX = 50;

/** Label value of the others. No partition is named by a single word in capitals. */
const OTHERS = 'OTHER';

/**
 * Adds the samples of all pools. Labels are bounded: in a group with many partitions, the first ones by name have their
 * own series, so that every scrape has the same ones.
 */
export function addPools(
  exposition: Exposition,
  asked: readonly PoolReply<PoolMetrics>[],
  config: Config,
): void {
  const byGroup = Map.groupBy(asked, ({ pool }) => pool.group);
  for (const [group, pools] of byGroup) {
    const budgets = definedGroup(config, group)?.limits.budget_usd ?? null;
    const byName = pools.toSorted((a, b) => (nameOf(a.pool) < nameOf(b.pool) ? -1 : 1));
    for (const [index, one] of byName.entries()) {
      const partition = index < PARTITIONS_MAX ? nameOf(one.pool) : OTHERS;
      const labels = { group, partition };
      addPool(exposition, labels, one);
      if (budgets !== null) addBudgets(exposition, labels, budgets);
    }
  }
}

/** Adds the budgets of a group for each of its pools. Unset budgets have no series. */
function addBudgets(
  to: Exposition,
  labels: Labels,
  { per_hour: hour, per_day: day, per_month: month }: GroupConfig['limits']['budget_usd'],
): void {
  for (const [period, usd] of Object.entries({ hour, day, month })) {
    if (usd !== null) to.add(BUDGET, { ...labels, period }, usd);
  }
}

/** Returns the label value of a partition. Prometheus treats an empty label as absent. */
function nameOf({ partition }: PlacedPool): string {
  return partition ?? '';
}

function addPool(to: Exposition, labels: Labels, one: PoolReply<PoolMetrics>): void {
  to.add(POOL_UP, labels, 'answer' in one ? 1 : 0);
  if ('error' in one) return;
  const { status } = one.answer;
  addStates(to, labels, status);
  to.addRows(GAUGES, labels, status);
  to.addRows(METRICS_ONLY, labels, one.answer);
  addMembers(to, labels['group'] ?? '', status);
  to.addHistogram(WAIT, labels, one.answer.waits);
  to.addHistogram(HOLD, labels, one.answer.holds);
}

/** Adds the metrics of a pool that are not the value of one row. */
function addStates(to: Exposition, labels: Labels, status: PoolStatus): void {
  const { limit, rates, spend } = status;
  const isOfAll = status.about === undefined;
  // A limit learned for only some calls does not apply to the others.
  const slots = isOfAll ? limit.effective : (limit.configured ?? limit.effective);
  if (slots !== null) to.add(SLOTS_LIMIT, labels, slots);
  if (limit.configured !== null) to.add(SLOTS_LIMIT_CONFIGURED, labels, limit.configured);
  to.addEach(PAUSED, labels, 'by', {
    operator: status.paused ? 1 : 0,
    upstream: isOfAll && status.paused_until !== null ? 1 : 0,
  });
  const breaker = isOfAll ? status.breaker : 'closed';
  for (const state of ['closed', 'half_open', 'open'] as const) {
    to.add(BREAKER, { ...labels, state }, breaker === state ? 1 : 0);
  }
  addScopes(to, labels, status);
  for (const [name, rate] of Object.entries(rates ?? {})) {
    to.add(RATE_LIMIT, { ...labels, limit: name }, rate.limit);
    to.add(RATE_LEFT, { ...labels, limit: name }, rate.left);
  }
  if (spend === null) return;
  const { hour_usd: hour, day_usd: day, month_usd: month } = spend;
  to.addEach(SPENT, labels, 'period', { hour, day, month });
  to.add(RESERVED, labels, spend.reserved_usd);
}

/** Adds the scopes of a pool that hold calls, each with one cause. */
function addScopes(to: Exposition, labels: Labels, status: PoolStatus): void {
  for (const one of holdingScopes(status)) {
    const [scope, by] = [scopeKindOf(one.about), causeOf(one)];
    if (scope !== null && by !== null) to.add(SCOPES_STOPPED, { ...labels, scope, by }, 1);
  }
}

type Holding = Pick<ScopeStatus, 'about' | 'paused_until' | 'breaker' | 'queued'>;

/** Returns the scopes of a pool, and those to which the states of the pool or its members apply. */
function holdingScopes({ scopes = [], members, ...own }: PoolStatus): readonly Holding[] {
  const states = members?.filter(({ retired }) => retired !== true) ?? [own];
  const narrow = states.flatMap(({ about, paused_until, breaker }) =>
    about === undefined ? [] : [{ about, paused_until, breaker, queued: 0 }],
  );
  return [...narrow, ...scopes];
}

/** Returns why the calls of a scope are held, or null if they are not. */
function causeOf({ breaker, paused_until: until, queued }: Holding) {
  if (breaker === 'open') return 'breaker';
  if (until !== null) return 'pause';
  if (breaker === 'half_open') return 'breaker';
  return queued > 0 ? 'ceiling' : null;
}

/**
 * Adds the samples of members, summed over the partitions of the group. A group has at most 32 members. Members that
 * are no longer configured are omitted.
 */
function addMembers(to: Exposition, group: string, { members, affinity }: PoolStatus): void {
  for (const member of members ?? []) {
    if (member.retired) continue;
    const labels = { group, member: member.id };
    const { effective } = member.limit;
    if (effective !== null) to.add(MEMBER_LIMIT, labels, effective);
    to.addRows(MEMBER_GAUGES, labels, member);
    to.add(MEMBER_OUT, labels, member.enabled && member.out !== null ? 1 : 0);
  }
  if (affinity === undefined) return;
  const { kept_total: kept, left_total: left, waited_total: waited } = affinity;
  to.addEach(AFFINITY, { group }, 'outcome', { kept, left, waited });
}

/** Handles `GET /metrics`: all counts in the text format of Prometheus. */
export async function metrics(context: Context<{ Bindings: Env }>): Promise<Response> {
  const { env } = context;
  try {
    await requireToken(context);
    const directory = await readDirectory(env);
    const { pools, version } = directory;
    const ask = (pool: GroupRpc): Promise<PoolMetrics> => pool.metrics();
    const asked = await askAwake(env, directory, pools, ask, (made) => made);
    const exposition = new Exposition();
    exposition.add(CONFIG_VERSION, {}, version);
    exposition.add(POOLS, {}, asked.length);
    exposition.add(POOLS_LEFT_OUT, {}, pools.length - asked.length);
    await addAttention(exposition, env, directory, asked);
    addPools(exposition, asked.filter(isShown), directory.config);
    for (const total of await directoryOf(env).refusalTotals()) addRefusals(exposition, total);
    return exposition.toResponse();
  } catch (error) {
    return problemResponse(error);
  }
}

/**
 * Adds the rejected calls with the same labels. Unknown facts get an empty label, which Prometheus treats as absent.
 */
function addRefusals(to: Exposition, { count, reason, ...facts }: RefusalTotal): void {
  const { key, team, group, upstream } = facts;
  const labels = { reason, key, team, group, upstream };
  const texts = Object.entries(labels).map(([name, value]) => [name, value ?? ''] as const);
  to.add(REFUSED, Object.fromEntries(texts), count);
}

/** Adds the number of entries of each rule, including 0, from the same list as `GET /admin/api/attention`. */
async function addAttention(
  exposition: Exposition,
  env: Env,
  directory: Directory,
  asked: readonly PoolReply<PoolMetrics>[],
): Promise<void> {
  const replies = asked.map((one) =>
    'error' in one ? one : { pool: one.pool, answer: one.answer.status },
  );
  const all = await attentionFrom(env, directory, replies);
  for (const rule of ATTENTION_RULES) {
    exposition.add(ATTENTION, { rule }, all.filter((one) => one.rule === rule).length);
  }
}

/** Omits idle partitions. They leave the list in time, and need no series until then. */
function isShown(one: PoolReply<PoolMetrics>): boolean {
  return 'error' in one || one.pool.partition === null || one.answer.status.idle_ms < POOL_IDLE_MS;
}

/**
 * Accepts `METRICS_TOKEN` and `ADMIN_TOKEN`. The route is disabled if neither is set. Failed attempts are slowed down
 * as in the admin API, because the token could otherwise be guessed here without a limit.
 */
async function requireToken(context: Context<{ Bindings: Env }>): Promise<void> {
  const { env, req } = context;
  const expected = ['METRICS_TOKEN', 'ADMIN_TOKEN']
    .map((name) => readSecret(env, name))
    .filter((token) => token !== null);
  if (expected.length === 0) {
    throw new ProblemError(
      403,
      `Metrics are disabled: the secret \`METRICS_TOKEN\` ${secretFault(env, 'METRICS_TOKEN')}. Give Prometheus a token as \`authorization: { credentials: … }\`, and set it here: ${howToSet(env, 'METRICS_TOKEN', req.url)}`,
    );
  }
  refuseBlocked(context);
  const given = /^bearer +(.+)$/i.exec(req.header('authorization') ?? '')?.[1]?.trim() ?? '';
  const [hash = '', ...hashes] = await Promise.all([given, ...expected].map(secretHash));
  // All tokens are compared, so that the response time does not reveal which one matches.
  if (hashes.filter((each) => isSameHash(hash, each)).length > 0) return;
  if (given !== '') await slowDown(context);
  throw new ProblemError(401, 'Send `Authorization: Bearer <METRICS_TOKEN>`.', {
    headers: { 'www-authenticate': 'Bearer realm="headgate-metrics"' },
  });
}
