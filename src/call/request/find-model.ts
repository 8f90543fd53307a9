import type { ErrorReply } from '../../contract/reasons.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { modelsInReadings, type Operation } from '../../upstream/operation/operation.ts';
import { keepaliveForWaitMs } from '../../routing/placement.ts';
import { readModel, type BodyProof, type BodySearch } from '../../upstream/body/request-body.ts';
import { PlainAbort } from '../../runtime/async.ts';
import { quoted } from '../../core/words/quoted.ts';
import { modelsInQuery, referenceInQuery } from '../../upstream/operation/upgrades.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import {
  tooManyBytes,
  LEFT,
  rejected,
  type BodyRead,
  type CallerLeft,
  type Rejected,
} from '../results/result.ts';
import type { AuthenticatedCall } from './call.ts';
import { bodyBudget } from './body.ts';
import { methodOf } from './upgrade.ts';

/** Decides whether the model of a call must be found and proven, and reads it from the body. */

/** Minimum and maximum wait for a body. Uploads take time, even for callers that do not want to queue. */
const BODY_WAIT_MIN_MS = 10_000;
const BODY_WAIT_MAX_MS = 240_000;

/** Requires that the model is found, for calls that are routed by the model in their body. */
export const REQUIRES_MODEL: BodyProof = {
  isBound: true,
  allowsReferences: () => false,
  against: () => null,
};

export function looksIntoBody(
  { limited, model, socket }: Operation,
  rule: ModelRule,
  isKnown: boolean,
): boolean {
  if (!limited || model.from === 'path' || socket !== undefined) return false;
  // The location of a model is unknown for opaque upstreams. One in the body is the best guess.
  if (model.from === 'none') return rule.isTrue && rule.isWanted;
  return rule.isTrue || (rule.isWanted && !isKnown);
}

/** Returns whether a call may receive comments if its body requests a stream. */
export function mayStream(
  known: AuthenticatedCall,
  upstream: Upstream,
  path: string,
  operation: Operation,
): boolean {
  const { table, headers, caller } = known;
  const { keyIds, keyTimeoutMs } = caller;
  const { name, limited, model } = operation;
  if (!limited || model.from !== 'body') return false;
  if (keepaliveForWaitMs(keyTimeoutMs ?? 0) !== null) return true;
  const method = methodOf(known, operation);
  const call = { upstream, operation: name, method, path, keyIds };
  return headers.wantsKeepalive || table.routes.mayKeepAlive(call);
}

/** Returns whether a path requests a stream. Without `alt=sse` Gemini streams an array, which has no comments. */
export function isStreamPath(path: string, query: URLSearchParams): boolean {
  return path.endsWith(':streamGenerateContent') && query.get('alt') === 'sse';
}

/** Reads the body until its model is known, while the caller is connected and willing to wait. */
export async function readBody(
  { request, signal, body, headers, caller, after }: AuthenticatedCall,
  of: Omit<BodySearch, 'ownKey'>,
): Promise<({ readonly kind: 'read' } & BodyRead) | Rejected | CallerLeft> {
  const bodyWaitMs = Math.max(headers.maxWaitMs ?? BODY_WAIT_MAX_MS, BODY_WAIT_MIN_MS);
  const search = { ...of, ownKey: caller.credentials.gatewayKey };
  const stop = new PlainAbort(signal);
  const callOff = after(bodyWaitMs, () => stop.abort());
  const room = {
    budget: bodyBudget,
    maxWaitMs: headers.maxWaitMs ?? Infinity,
    signal: stop,
  };
  const read = await readModel(request, room, search);
  callOff();
  switch (read.kind) {
    case 'unreadable':
      return rejected({ reason: 'body_unreadable', message: read.message });
    case 'crowded':
      return tooManyBytes();
    case 'aborted':
      return signal.aborted ? LEFT : rejected(tooSlow(bodyWaitMs, search));
    case 'found':
    case 'absent':
    case 'hidden': {
      const { kind: found, model, isStream } = read;
      body.hold(read.body);
      return { kind: 'read', found, model, isStream };
    }
  }
}

function tooSlow(bodyWaitMs: number, { wantsModel, proof }: BodySearch): ErrorReply {
  const help =
    wantsModel && proof === null
      ? ' To skip reading it, name the model in the `headgate-model` header.'
      : '';
  const message = `The body could not be read within ${bodyWaitMs} ms.${help}`;
  return { reason: 'queue_timeout', message };
}

/** The rejection of a call that cannot be routed again, because its body is gone. */
export function changedMeanwhile(): Rejected {
  const message = 'The configuration changed while the request was being read. Send it again.';
  return rejected({ reason: 'limiter_unavailable', message });
}

interface ModelRule {
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
  readonly headerModel: string | null;
  readonly upstream: Upstream;
  readonly path: string;
  readonly operation: Operation;
}

/** What must hold for the body of a call whose model must be verified. */
export function proofOf(
  rule: ModelRule,
  { headerModel, upstream, path, operation }: ModelRequest,
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
    allowsReferences: () => table.routes.allowsReferences(call, headerModel),
    against: (shown) => disagreement({ headerModel, shown, where: 'body' }, upstream, table),
  };
}

/**
 * The error reply to a call whose header names another model than the call shows. null if they agree, or the header
 * names none.
 */
export function disagreement(
  {
    headerModel,
    shown,
    where,
  }: { headerModel: string | null; shown: string; where: 'body' | 'path' },
  upstream: Upstream,
  { routes }: RoutingTable,
): ErrorReply | null {
  if (headerModel === null || routes.isSameModel(upstream, headerModel, shown)) return null;
  const message = `headgate-model: names ${quoted(headerModel)}, but the ${where} of the call names ${quoted(shown)}, which the upstream will use. Remove the header.`;
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
