import type * as z from 'zod';
import type { upstreamInfoSchema } from '../../../src/contract/admin/answer-schemas.ts';
import type { groupStatusSchema } from '../../../src/contract/admin/status-schemas.ts';
import type { Decision } from './call-words.ts';

type GroupStatus = z.output<typeof groupStatusSchema>;
type Info = z.output<typeof upstreamInfoSchema>;

/** An upstream, as the API tells it. */
export type UpstreamInfo = Omit<Info, 'models' | 'groups' | 'configured' | 'member_secrets'> & {
  readonly member_secrets: readonly Info['member_secrets'][number][];
  readonly models: readonly string[];
  readonly groups: readonly string[];
  readonly configured: Readonly<Record<string, unknown>> | null;
};

/** View of groups on an upstream at this moment. */
export interface Seen {
  readonly state: Info['health']['state'] | 'off';
  /** Until when it wants no calls, or its breaker lets none through. */
  readonly until: string | null;
  /** Refusals by kind, the most frequent first. */
  readonly refusals: readonly (readonly [kind: string, total: number])[];
  /** Null: no group counts cost. */
  readonly spend: { readonly dayUsd: number; readonly monthUsd: number } | null;
}

/** Whether anybody has called an upstream, or said something of it. */
export function isUsed({ configured, groups }: UpstreamInfo): boolean {
  return configured !== null || groups.length > 0;
}

/** Whether an upstream is what somebody looks for: by id, address, dialect or group. */
export function isFound(upstream: UpstreamInfo, searched: string): boolean {
  const words = searched.toLowerCase().split(/\s+/).filter(Boolean);
  const { id, base_url, dialect, groups } = upstream;
  const text = [id, base_url, dialect, ...groups].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

/**
 * Puts together what groups say of an upstream now, by the rules of the API. Where none of them is known it is what the
 * API said when it was asked.
 */
export function seenOf({ enabled, health }: UpstreamInfo, groups: readonly GroupStatus[]): Seen {
  const refusals = new Map<string, number>();
  for (const { refusals_total } of groups) {
    for (const [kind, total] of Object.entries(refusals_total)) {
      refusals.set(kind, (refusals.get(kind) ?? 0) + total);
    }
  }
  if (groups.length === 0) {
    for (const [kind, total] of Object.entries(health.refusals_total)) refusals.set(kind, total);
  }
  const spends = groups.flatMap(({ spend }) => spend ?? []);
  return {
    state: enabled ? stateOf(health.state, groups) : 'off',
    until: latest(groups.flatMap((one) => [one.paused_until, one.breaker_until])),
    refusals: [...refusals].toSorted((a, b) => b[1] - a[1]),
    spend:
      spends.length === 0
        ? null
        : {
            dayUsd: spends.reduce((sum, { day_usd }) => sum + day_usd, 0),
            monthUsd: spends.reduce((sum, { month_usd }) => sum + month_usd, 0),
          },
  };
}

function stateOf(said: Info['health']['state'], groups: readonly GroupStatus[]) {
  if (groups.length === 0) return said;
  if (groups.some(({ breaker }) => breaker !== 'closed')) return 'open';
  if (groups.some((group) => group.paused_until !== null)) return 'waiting';
  return groups.every(({ error }) => error !== undefined) ? 'unreachable' : 'ok';
}

function latest(instants: readonly (string | null)[]): string | null {
  return (
    instants
      .filter((at) => at !== null)
      .toSorted()
      .at(-1) ?? null
  );
}

/** The latest refusal of each kind that an upstream gave, the latest first. */
export function lastRefusals(decisions: readonly Decision[], upstream: string): Decision[] {
  const byKind = new Map<string, Decision>();
  for (const decision of decisions) {
    const { upstream_said: kind } = decision;
    if (decision.upstream !== upstream || kind === null || kind === 'served') continue;
    const known = byKind.get(kind);
    if (known === undefined || known.decided_at < decision.decided_at) byKind.set(kind, decision);
  }
  return [...byKind.values()].toSorted((a, b) => (a.decided_at < b.decided_at ? 1 : -1));
}
