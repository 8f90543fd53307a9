import type { Check, Need } from './check.ts';
import { duration } from './figures.ts';
import type { CanaryPace } from './pace.ts';

export interface Choice {
  /** Ids of checks. null means all checks with consent. */
  readonly only: readonly string[] | null;
  readonly consents: ReadonlySet<Need>;
}

/** A check, and why it is skipped. null means that it runs. */
export interface Planned {
  readonly check: Check;
  readonly leftOut: string | null;
}

const WHY: Readonly<Record<Need, string>> = {
  load: 'sends thousands of calls and requires --allow-load',
  upstream:
    'calls a provider, which costs money, and requires --upstream, --model and --allow-spend',
  deploy: 'needs a deploy during the check and requires --during-deploy',
};

export function planOf(checks: readonly Check[], { only, consents }: Choice): Planned[] {
  return checks.map((check) => {
    if (only !== null && !only.includes(check.id)) return { check, leftOut: 'not selected' };
    const missing = check.needs.find((need) => !consents.has(need));
    return { check, leftOut: missing === undefined ? null : WHY[missing] };
  });
}

/** Returns an error for each selected check without consent. */
export function refusedOf(planned: readonly Planned[], { only }: Choice): string[] {
  return planned.flatMap(({ check, leftOut }) =>
    only?.includes(check.id) === true && leftOut !== null ? [`${check.id}: ${leftOut}`] : [],
  );
}

export function describePlan(
  planned: readonly Planned[],
  pace: CanaryPace,
  url: string,
  upstreamId: string | null,
): string {
  const lines = planned.map(({ check, leftOut }) => {
    if (leftOut !== null) return `  ${check.id.padEnd(10)}skipped: ${leftOut}`;
    const { calls, ms, paidCalls = 0 } = check.plan(pace, upstreamId !== null);
    const paid = paidCalls > 0 ? `, ${paidCalls} calls to ${upstreamId} that cost money` : '';
    return `  ${check.id.padEnd(10)}${calls} calls${paid}, at most about ${duration(ms)}`;
  });
  const groups =
    'The run creates groups named canary-*, which match no other calls, and removes them at the end.';
  return [`Plan for ${url}`, ...lines, groups].join('\n');
}
