import type { StrictOptions } from '../../strict-upstream/strict-upstream.ts';
import type { LifecycleStage } from './lifecycle-stage.ts';
import { startStage } from './lifecycle-stage.ts';

/** An upstream with a count of its own, and the group before it. All have the same name. */
export interface LimitsStageScope {
  readonly id: string;
  /** The group, but for its name and what it matches; null: nothing is configured. */
  readonly group: Readonly<Record<string, unknown>> | null;
}

/** Starts a stage of upstreams that do not share a limit, so that tests run at the same time. */
export function startScopes(
  scopes: readonly LimitsStageScope[],
  upstream: StrictOptions,
): Promise<LifecycleStage> {
  return startStage({
    config: (strict) => ({
      upstreams: scopes.map(({ id }) => ({
        id,
        base_url: strict.scopeUrl(id),
        dialect: 'openai',
      })),
      groups: scopes.flatMap(({ id, group }) =>
        group === null ? [] : [{ name: id, match: { upstreams: [id] }, ...group }],
      ),
    }),
    upstream,
  });
}
