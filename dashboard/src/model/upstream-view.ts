import type { AnswerAt } from '../../../src/admin/client.ts';
import type * as z from 'zod';
import type { Frozen } from '../../../src/contract/shared-shapes.ts';
import type { groupStatusSchema } from '../../../src/contract/group-status.ts';
import { listWords } from './scope-words.ts';
import type { SeenLimits, Suggestion } from './suggestions.ts';
type Info = AnswerAt<'GET /upstreams'>['upstreams'][number];

export type LastRefusalView = Frozen<NonNullable<Info['calls']>['last_refusals'][number]>;

export type UpstreamInfo = Omit<
  Info,
  'models' | 'groups' | 'configured' | 'member_secrets' | 'calls' | 'health'
> & {
  readonly calls: Frozen<Info['calls']>;
  readonly health: Frozen<Info['health']>;
  readonly member_secrets: readonly Info['member_secrets'][number][];
  readonly models: readonly string[];
  readonly groups: readonly string[];
  readonly configured: Readonly<Record<string, unknown>> | null;
};

export type UpstreamDetail = UpstreamInfo & {
  readonly suggested_limits: readonly Suggestion[];
  readonly seen_limits: readonly SeenLimits[];
};

export interface UpstreamGroupsView {
  readonly state: Info['health']['state'] | 'off';
  /** End of the backoff or of the open breaker. */
  readonly until: string | null;
  /** Stopped calls. null if all calls or none are stopped. */
  readonly stopped: string | null;
  readonly inFlight: number;
  /** Calls that started in the current UTC day. */
  readonly grantedToday: number;
  /** null if it was never called. */
  readonly lastCallAt: string | null;
  /** Refusals of the current UTC day by kind, most frequent first. */
  readonly refusals: readonly (readonly [kind: string, total: number])[];
  /** The last refusal of each kind, newest first. */
  readonly lastRefusals: readonly LastRefusalView[];
  /** null if no group tracks cost. */
  readonly spend: { readonly dayUsd: number; readonly monthUsd: number } | null;
}

/** States that groups report, most severe first. */
const WORST = ['open', 'waiting', 'partly paused', 'ok'] as const;

/** Whether an upstream was called or configured. */
export function isUsed({ configured, groups, calls }: UpstreamInfo): boolean {
  return configured !== null || groups.length > 0 || calls !== null;
}

/** Whether an upstream matches a search by id, address, dialect or group. */
export function isFound(upstream: UpstreamInfo, searched: string): boolean {
  const words = searched.toLowerCase().split(/\s+/).filter(Boolean);
  const { id, base_url, dialect, groups } = upstream;
  const text = [id, base_url, dialect, ...groups].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Combines the live reports of groups. If no group has called the upstream, the API response is used. */
export function seenOf(
  { id, enabled, health, calls }: UpstreamInfo,
  groups: readonly Pick<z.output<typeof groupStatusSchema>, 'upstreams'>[],
): UpstreamGroupsView {
  const there = groups.flatMap(({ upstreams }) => upstreams.filter((one) => one.id === id));
  const states = there.map(({ state }) => state);
  const live = WORST.find((state) => states.includes(state));
  const isPartly = live === 'partly paused';
  const shown = there.filter((one) => isPartly || one.state !== 'partly paused');
  const stopped = there.length === 0 ? health.stopped : there.flatMap((one) => one.stopped ?? []);
  const reported = there.length > 0 ? there : calls === null ? [] : [calls];
  const refusals = new Map<string, number>();
  for (const [kind, count] of reported.flatMap((one) => Object.entries(one.day_refusals))) {
    refusals.set(kind, (refusals.get(kind) ?? 0) + count);
  }
  const spends = reported.flatMap(({ spend }) => spend ?? []);
  const sum = (of: (one: (typeof reported)[number]) => number): number =>
    reported.reduce((total, one) => total + of(one), 0);
  return {
    state: enabled ? (live ?? health.state) : 'off',
    until: latest(shown.flatMap((one) => [one.paused_until, one.breaker_until])),
    stopped: listWords(stopped ?? []),
    inFlight: sum((one) => one.in_flight),
    grantedToday: sum((one) => one.day_granted),
    lastCallAt: latest(reported.map((one) => one.last_call_at)),
    refusals: [...refusals].toSorted((a, b) => b[1] - a[1]),
    lastRefusals: latestOfEach(reported.flatMap((one) => one.last_refusals)),
    spend:
      spends.length === 0
        ? null
        : {
            dayUsd: spends.reduce((total, { day_usd }) => total + day_usd, 0),
            monthUsd: spends.reduce((total, { month_usd }) => total + month_usd, 0),
          },
  };
}

function latestOfEach(all: readonly LastRefusalView[]): LastRefusalView[] {
  const byKind = new Map<string, LastRefusalView>();
  for (const one of all.toSorted((a, b) => (a.at < b.at ? -1 : 1))) byKind.set(one.kind, one);
  return [...byKind.values()].toSorted((a, b) => (a.at < b.at ? 1 : -1));
}

function latest(instants: readonly (string | null)[]): string | null {
  return (
    instants
      .filter((at) => at !== null)
      .toSorted()
      .at(-1) ?? null
  );
}
