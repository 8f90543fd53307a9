import type { Check, Need } from './check.ts';
import { duration } from './figures.ts';
import type { CanaryPace } from './pace.ts';

/** Choice of checks, and consent to what they cost. */
export interface Choice {
  /** Ids of checks; null: all for which there is consent. */
  readonly only: readonly string[] | null;
  readonly consents: ReadonlySet<Need>;
}

/** A check, and why it is left out; null: it runs. */
export interface Planned {
  readonly check: Check;
  readonly leftOut: string | null;
}

const WHY: Readonly<Record<Need, string>> = {
  load: 'it sends thousands of calls: --allow-load',
  upstream: 'it calls a provider, which costs money: --upstream, --model and --allow-spend',
  deploy: 'somebody has to deploy meanwhile: --during-deploy',
};

/** Chooses what to run. */
export function planOf(checks: readonly Check[], { only, consents }: Choice): Planned[] {
  return checks.map((check) => {
    if (only !== null && !only.includes(check.id)) return { check, leftOut: 'not asked for' };
    const missing = check.needs.find((need) => !consents.has(need));
    return { check, leftOut: missing === undefined ? null : WHY[missing] };
  });
}

/** Finds checks that were asked for by name, and lack a consent. */
export function refusedOf(planned: readonly Planned[], { only }: Choice): string[] {
  return planned.flatMap(({ check, leftOut }) =>
    only?.includes(check.id) === true && leftOut !== null ? [`${check.id}: ${leftOut}`] : [],
  );
}

/** Tells people what will be done, before it is done. */
export function describePlan(
  planned: readonly Planned[],
  pace: CanaryPace,
  url: string,
  upstreamId: string | null,
): string {
  const lines = planned.map(({ check, leftOut }) => {
    if (leftOut !== null) return `  ${check.id.padEnd(10)}left out: ${leftOut}`;
    const { calls, ms, paidCalls = 0 } = check.plan(pace, upstreamId !== null);
    const paid = paidCalls > 0 ? `, ${paidCalls} calls to ${upstreamId} that cost money` : '';
    return `  ${check.id.padEnd(10)}${calls} calls${paid}, about ${duration(ms)} at the most`;
  });
  const groups =
    'It makes groups named canary-*, which no call of others matches, and removes them.';
  return [`Plan for ${url}`, ...lines, groups].join('\n');
}
