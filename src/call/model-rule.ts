import { quoted } from '../core/words/quoted.ts';
import type { ErrorReply } from '../contract/reasons.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { modelsInReadings, type Operation } from '../upstream/operation/operation.ts';
import { modelsInQuery, referenceInQuery } from '../upstream/operation/upgrades.ts';
import type { BodyProof } from '../upstream/body/request-body.ts';
import type { RoutingTable } from '../config/snapshots.ts';
import type { AuthenticatedCall } from './call.ts';
import { methodOf } from './socket/upgrade.ts';

export interface ModelRule {
  /** Whether anything about the call depends on the model. */
  readonly isWanted: boolean;
  /**
   * Whether the model that the upstream will read counts, and a header only names one that the call does not show.
   * Otherwise the header is trusted, because callers that pay themselves only misplace their own calls.
   */
  readonly isTrue: boolean;
}

const UNLIMITED: ModelRule = { isWanted: false, isTrue: false };

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

/** Whether the model may have to be verified at some upstream, for a call whose model selects the upstream. */
export function maybeTrue({ table: { routes }, caller }: AuthenticatedCall): boolean {
  const mayUseSecrets = caller.gatewayKeyId !== null && caller.credentials.providerKey === null;
  return mayUseSecrets || holdsKey(caller) || routes.countsSome;
}

function holdsKey({ key }: AuthenticatedCall['caller']): boolean {
  return key !== null && key.groups.length > 0;
}

interface ModelRequest {
  readonly said: string | null;
  readonly upstream: Upstream;
  readonly path: string;
  readonly operation: Operation;
}

/** What must hold for the body of a call whose model must be verified. `said` is the model in its header. */
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

/**
 * The error reply to a call whose header names another model than the call shows. null if they agree, or the header
 * names none.
 */
export function disagreement(
  { said, shown, where }: { said: string | null; shown: string; where: 'body' | 'path' },
  upstream: Upstream,
  { routes }: RoutingTable,
): ErrorReply | null {
  if (said === null || routes.isSameModel(upstream, said, shown)) return null;
  const message = `headgate-model: names ${quoted(said)}, but the ${where} of the call names ${quoted(shown)}, which the upstream will use. Remove the header.`;
  return { reason: 'header_invalid', message };
}

/**
 * The error reply to a call whose query may name another model than the one that counts, because some servers (LiteLLM)
 * prefer the query to the body. null if it names none, or the same. `counted` is null if the call names none elsewhere.
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
    const message = `The query names model ${quoted(other)}, which some servers use instead of the model that Headgate counts. Remove it from the query, or name the same model in the body or the path. If neither can name one, name it in the \`headgate-model\` header.`;
    return { reason: 'model_ambiguous', message };
  }
  const reference = referenceInQuery(query);
  if (reference === null || proofOf(rule, asked, call).allowsReferences()) return null;
  const message = `The query may name the model of this call by reference, in ${quoted(reference)}. A group or the key of this call depends on the model, which Headgate cannot look up. Remove the reference from the query, or ask the operator to set \`match.references: allow\` in the group.`;
  return { reason: 'body_unreadable', message };
}

/**
 * The error reply to a path in which servers may read several models, because only one is counted. null if there is at
 * most one.
 */
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
    each.from === 'path' ? quoted(each.value) : 'one in the body',
  );
  const message = `Servers may read this path as calls of different models: ${names.slice(0, 4).join(', ')}. Write it without escapes, parameters or dots.`;
  return { reason: 'model_ambiguous', message };
}

/**
 * The error reply to a call whose path names a stored object with a model, where groups or keys depend on the model.
 */
export function referredPath(reference: string): ErrorReply {
  const message = `The path names the model of this call by reference, in ${quoted(reference)}. A group or the key of this call depends on the model, which Headgate cannot look up. Add \`model\` to the body, or ask the operator to set \`match.references: allow\` in the group.`;
  return { reason: 'body_unreadable', message };
}
