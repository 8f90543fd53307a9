import type { GatewayKeyConfig } from '../../contract/config/config.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import type { Placement } from '../../routing/placement.ts';

/** Facts of a call, set as they are found, by which its refusal is counted. null until found. */
export interface FoundFacts {
  caller: {
    readonly key: Pick<GatewayKeyConfig, 'id' | 'team'> | null;
    readonly fingerprint: string | null;
  } | null;
  located: { readonly upstream: Pick<Upstream, 'id'>; readonly model: string | null } | null;
  placements: readonly Pick<Placement, 'group'>[];
}

export function nothingFound(): FoundFacts {
  return { caller: null, located: null, placements: [] };
}
