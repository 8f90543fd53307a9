import type { ErrorReply } from '../contract/reasons.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { modelsInReadings, type Operation } from '../upstream/operation/operation.ts';
import { modelsInQuery, referenceInQuery } from '../upstream/operation/upgrades.ts';
import type { BodyProof } from '../upstream/body/request-body.ts';
import type { RoutingTable } from '../config/snapshots.ts';
import type { AuthenticatedCall } from './call.ts';
import { methodOf } from './socket/upgrade.ts';

/** The way in which the model of a call is found out. */
export interface ModelRule {
  /** Whether something of the call goes by it. */
  readonly isWanted: boolean;
  /**
   * Whether what counts is the model that the upstream will read, and a header only stands for one that the call
   * does not show. Elsewhere the header is believed: who pays for the call themselves only misplace their own.
   */
  readonly isTrue: boolean;
}

const UNLIMITED: ModelRule = { isWanted: false, isTrue: false };

/** Tells the rule for a call to an upstream. */
export function modelRule(
  known: AuthenticatedCall,
  upstream: Upstream,
  path: string,
  operation: Operation,
): ModelRule {
  if (!operation.limited) return UNLIMITED;
  const { table, caller } = known;
  const method = methodOf(known, operation);
  const { keyIds } = caller;
  const call = { upstream, operation: operation.name, method, path, keyIds };
  const use = table.routes.useOfModel(call);
  const isOurSecret = upstream.secret !== null && caller.credentials.providerKey === null;
  return {
    isWanted: use !== 'none',
    isTrue: use === 'counts' || isOurSecret || holdsKey(caller),
  };
}

/** Tells whether the rule may be so at some upstream, for a call whose upstream is found by its model. */
export function maybeTrue({ table: { routes }, caller }: AuthenticatedCall): boolean {
  const mayUseSecrets = caller.gatewayKeyId !== null && caller.credentials.providerKey === null;
  return mayUseSecrets || holdsKey(caller) || routes.countsSome;
}

function holdsKey({ key }: AuthenticatedCall['caller']): boolean {
  return key !== null && key.groups.length > 0;
}

/** A call at an upstream, with the model that its header names. */
interface ModelRequest {
  readonly said: string | null;
  readonly upstream: Upstream;
  readonly path: string;
  readonly operation: Operation;
}

/** Says what must hold of the body of a call whose model must be true, where the header may have `said` one. */
export function proofOf(
  rule: ModelRule,
  { said, upstream, path, operation }: ModelRequest,
  known: AuthenticatedCall,
): BodyProof {
  const {
    table,
    caller: { keyIds },
  } = known;
  const method = methodOf(known, operation);
  const call = { upstream, operation: operation.name, method, path, keyIds };
  return {
    isBound: rule.isWanted,
    allowsReferences: () => table.routes.allowsReferences(call, said),
    against: (shown) => disagreement({ said, shown, where: 'body' }, upstream, table),
  };
}

/** The error reply to a call whose header names another model than it shows; null: they agree, or there is none. */
export function disagreement(
  { said, shown, where }: { said: string | null; shown: string; where: 'body' | 'path' },
  upstream: Upstream,
  { routes }: RoutingTable,
): ErrorReply | null {
  if (said === null || routes.isSameModel(upstream, said, shown)) return null;
  const message = `headgate-model: names ${quote(said)}, but the ${where} of the call names ${quote(shown)}, which is what the upstream will read. Leave the header out.`;
  return { reason: 'header_invalid', message };
}

/**
 * The error reply to a call whose query may name another model than the one that counts: some servers (LiteLLM) prefer it to
 * the body's. Null: it names none, or the same. `counted` null: the call names none elsewhere.
 */
export function againstQuery(
  rule: ModelRule,
  asked: ModelRequest,
  counted: string | null,
  call: AuthenticatedCall,
): ErrorReply | null {
  const { query, table } = call;
  const { upstream, operation } = asked;
  if (query.size === 0 || !rule.isTrue || !rule.isWanted) return null;
  if (!operation.limited || operation.socket !== undefined) return null;
  const other = modelsInQuery(query).find(
    (named) => counted === null || !table.routes.isSameModel(upstream, named, counted),
  );
  if (other !== undefined) {
    const message = `The query names the model ${quote(other)}, which some servers serve instead of the one that counts. Remove it from the query, or name the same model in the body or the path. Where neither can name one, name it in headgate-model.`;
    return { reason: 'model_ambiguous', message };
  }
  const reference = referenceInQuery(query);
  if (reference === null || proofOf(rule, asked, call).allowsReferences()) return null;
  const message = `The query may name the model of this call by reference, in ${quote(reference)}, and a group or the key of this call depends on the model, which Headgate cannot look up. Remove it from the query, or ask the operator to set match.references: allow in the group.`;
  return { reason: 'body_unreadable', message };
}

/** The error reply to a path in which servers may read several models, because only one is counted; null: at most one. */
export function severalInPath(
  known: Pick<AuthenticatedCall, 'method'>,
  operation: Operation,
  path: string,
  { dialect }: Upstream,
): ErrorReply | null {
  if (!operation.limited || operation.socket !== undefined) return null;
  const models = modelsInReadings(methodOf(known, operation), path, dialect);
  if (models.length < 2) return null;
  const names = models.map((each) =>
    each.from === 'path' ? quote(each.value) : 'one in the body',
  );
  const message = `Servers may read this path in several ways, as calls of several models: ${names.slice(0, 4).join(', ')}. Write it without escapes, parameters and dots.`;
  return { reason: 'model_ambiguous', message };
}

/** The error reply to a call whose path names a stored object with a model, where groups or keys depend on the model. */
export function referredPath(reference: string): ErrorReply {
  const message = `The path names the model of this call by reference, in ${quote(reference)}, and a group or the key of this call depends on the model, which Headgate cannot look up. Add model to the body, or ask the operator to set match.references: allow in the group.`;
  return { reason: 'body_unreadable', message };
}

/** Shortens what a caller sent, so that it can be sent back. */
function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}
