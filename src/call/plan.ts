import type { ErrorReply } from '../contract/reasons.ts';
import { closedRoute, forbiddenFor, forbiddenUpstream } from '../routing/key-access.ts';
import { hashedPlacements, mayHash } from '../routing/hashed-partition.ts';
import type { Placement, RoutedCall } from '../routing/placement.ts';
import type { KnownCall } from './call.ts';
import { callRules, type CallRules } from './call-rules.ts';
import { accountOf } from './identity/accounts.ts';
import { keyFor, type UpstreamKey } from './identity/authenticate.ts';
import type { Located } from './locate.ts';
import type { Rejected } from './result.ts';

/** A call at one upstream that may serve it, with everything that it goes by there. */
export interface Candidate {
  readonly kind: 'planned';
  readonly call: KnownCall;
  readonly located: Located;
  readonly key: UpstreamKey;
  /** The call as groups see it. */
  readonly routed: RoutedCall;
  /** The pools that it needs a slot of, narrow first. */
  readonly placements: readonly Placement[];
  readonly rules: CallRules;
  /** The place that the call asked for, if this is another; null: it is this one. */
  readonly spilledFrom: Located | null;
}

/** Plans a call at an upstream: with which key, in which groups, by which of their rules. */
export async function planAt(
  call: KnownCall,
  located: Located,
  spilledFrom: Located | null = null,
): Promise<Candidate | Rejected> {
  const { caller, table, env } = call;
  const found = await keyFor(located.upstream, caller, table, env, spilledFrom !== null);
  if (found.kind === 'rejected') return found;
  const { key } = found;
  const { upstream, operation, model } = located;
  const account = operation.limited ? await accountOf(call, upstream, key) : null;
  const at = { upstream, operation: operation.name, model };
  const routed = { ...routedCall(call, at, key), account };
  const placed = placementsOf(call, routed);
  const placements = mayHash(table.routes, env)
    ? await hashedPlacements(placed, env, table.snapshot.fingerprintKey)
    : placed;
  const rules = callRules(placements);
  return { kind: 'planned', call, located, key, routed, placements, rules, spilledFrom };
}

/** A call of the caller as groups see it, whether it is made or not. */
export function routedCall(
  { request, caller }: KnownCall,
  at: Pick<RoutedCall, 'upstream' | 'operation' | 'model'>,
  key: UpstreamKey,
): RoutedCall {
  return {
    ...at,
    caller: caller.id,
    keyIds: caller.keyIds,
    keyFingerprint: key.fingerprint,
    account: null,
    header: (name) => request.headers.get(name),
  };
}

/** The pools of a call, by the configuration that it goes by, with partitions named by their values. */
export function placementsOf({ table }: KnownCall, routed: RoutedCall): readonly Placement[] {
  return table.routes.place(routed);
}

/** The pool of a call in the automatic group; null: it is in none. */
export function autoPlacementOf(call: KnownCall, routed: RoutedCall): Placement | null {
  return placementsOf(call, routed).find(({ config }) => config === null) ?? null;
}

/** The error reply to a call that its gateway key does not allow at a candidate; null: it does. */
export function forbiddenAt({ call, located, key, placements }: Candidate): ErrorReply | null {
  const { caller, request, table } = call;
  if (caller.key === null) return null;
  const { upstream, operation } = located;
  // Only behind a gateway key the operator's goes out.
  const shut = key.injected === null ? null : closedRoute(caller.key, located, request);
  if (shut !== null) return shut;
  return operation.limited
    ? forbiddenFor(caller.key, placements)
    : forbiddenUpstream(caller.key, upstream, table.routes);
}
