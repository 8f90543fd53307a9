import type { ErrorReply } from '../contract/reasons.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import type { Operation } from '../upstream/operation/operation.ts';
import { keepaliveForWaitMs } from '../routing/placement.ts';
import { readModel, type BodyProof, type BodySearch } from '../upstream/body/request-body.ts';
import type { AuthenticatedCall } from './call.ts';
import { tooManyBytes } from './many-keys.ts';
import { bodyBudget } from './isolate.ts';
import type { ModelRule } from './model-rule.ts';
import { LEFT, rejected, type BodyRead, type CallerLeft, type Rejected } from './result.ts';
import { methodOf } from './socket/upgrade.ts';
import { PlainAbort } from '../runtime/async.ts';

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
