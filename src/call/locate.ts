import type { ErrorReply } from '../contract/reasons.ts';
import type { CallerHeaders } from '../contract/request-headers.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { chooseUpstream, unifiedPath, type UnifiedShape } from '../routing/choose-upstream.ts';
import type { Schedule } from '../runtime/call-clock.ts';
import { classify, type Operation } from '../upstream/operation/operation.ts';
import {
  mayHoldKeys,
  readModel,
  unprove,
  unreadBody,
  type OutgoingBody,
  type Proof,
  type Search,
} from '../upstream/body/request-body.ts';
import { bodyBudget } from './isolate.ts';
import {
  disagreement,
  maybeTrue,
  modelRule,
  proofOf,
  type Believed,
  type ModelRule,
} from './model-rule.ts';
import type { RoutingTable } from '../config/snapshots.ts';

/** Where a call goes, and what it asks for. */
export interface Located {
  readonly upstream: Upstream;
  /** Path behind the upstream's base URL. */
  readonly path: string;
  readonly operation: Operation;
  /** Null: not known, because nobody needs it or the call names none. */
  readonly model: string | null;
  /** Whether it is the one that the upstream will read, or the call shows none. */
  readonly isProven: boolean;
  /** What the header calls the model, at this upstream. */
  readonly said: string | null;
  /** Whether an event stream is asked for. Looked for only where comments may be sent meanwhile. */
  readonly isStream: boolean;
  readonly body: OutgoingBody;
}

/** The refusal of a call that may belong somewhere by a newer configuration, with what was read of it already. */
export interface Misplaced extends ErrorReply {
  readonly read: EarlierRead;
}

/** What was found in a body, and what was looked for. */
export interface EarlierRead extends Read {
  readonly search: Pick<Search, 'wantsStream' | 'proof'>;
}

/** What there is of the body of a refused call; null: it was not read, or nothing is left. */
export function readOf(refusal: ErrorReply | Misplaced): EarlierRead | null {
  return 'read' in refusal ? refusal.read : null;
}

export interface Incoming {
  readonly request: Request;
  readonly url: URL;
  readonly query: URLSearchParams;
  readonly table: RoutingTable;
  readonly headers: Pick<CallerHeaders, 'upstream' | 'model' | 'wantsKeepalive'>;
  readonly caller: Believed;
  /** How long the reading of a body may wait for its turn, in milliseconds. */
  readonly bodyWaitMs: number;
  readonly after: Schedule;
  /** Null: the body was not read yet. */
  readonly earlier: EarlierRead | null;
}

/** The dialect that a path of the unified routes is spoken in. */
export function unifiedShape(path: string): UnifiedShape {
  return /^\/v1\/messages(\/|$)/.test(path) ? 'anthropic' : 'openai';
}

/** A path as `/{upstream}/rest`, taken apart. */
export function splitPath(pathname: string): { readonly id: string; readonly rest: string } {
  const slash = pathname.indexOf('/', 1);
  if (slash < 0) return { id: pathname.slice(1), rest: '' };
  return { id: pathname.slice(1, slash), rest: pathname.slice(slash) };
}

/** A call to `/{upstream}/*`: its body is read only if something goes by the model. */
export async function locateDirect(
  incoming: Incoming,
  upstream: Upstream,
  path: string,
): Promise<Located | ErrorReply | 'left'> {
  const { request, query, table, headers, caller } = incoming;
  const operation = classify(request.method, path, query, upstream.dialect);
  const rule = modelRule(table, caller, upstream, operation);
  const said = headers.model;
  const shown = pathModel(operation);
  if (shown !== null && rule.isTrue) {
    const refusal = disagreement({ said, shown, where: 'path' }, upstream, table);
    if (refusal !== null) return refusal;
  }
  // What the path shows is what the upstream will serve: the header only says what is not shown.
  const known = shown ?? said;
  const located = { upstream, path, operation, said };
  const wantsModel = looksIntoBody(operation, rule, known !== null);
  const wantsStream = mayStream(incoming, upstream, operation);
  if (!wantsModel && !wantsStream && !mayHoldKeys(request)) {
    const isStream = isStreamPath(path, query);
    const body = unreadBody(request);
    return { ...located, model: known, isProven: shown !== null, isStream, body };
  }
  const proof = wantsModel && rule.isTrue ? proofOf(rule, said, upstream, table) : null;
  const read = await readBody(incoming, {
    wantsModel: wantsModel || wantsStream,
    wantsStream,
    proof,
  });
  if (read === 'left' || 'reason' in read) return read;
  const { kind, ...found } = read;
  if (proof === null) {
    const isStream = read.isStream || isStreamPath(path, query);
    const model = known ?? read.model;
    return { ...located, ...found, isStream, model, isProven: shown !== null };
  }
  const against = read.model === null ? null : proof.against(read.model);
  if (against !== null) {
    read.body.discard();
    return against;
  }
  const isProven = kind !== 'hidden';
  return { ...located, ...found, model: read.model ?? (isProven ? said : null), isProven };
}

/** Whether the body of a call must be looked into for its model. */
function looksIntoBody({ limited, model }: Operation, rule: ModelRule, isKnown: boolean): boolean {
  if (!limited || model.from === 'path') return false;
  // Of an opaque upstream nobody knows where a model may stand: one in the body is the best guess.
  if (model.from === 'none') return rule.isTrue && rule.isWanted;
  return rule.isTrue || (rule.isWanted && !isKnown);
}

function mayStream(
  { table, headers, caller: { keyIds } }: Incoming,
  upstream: Upstream,
  { name, limited, model }: Operation,
): boolean {
  if (!limited || model.from !== 'body') return false;
  return headers.wantsKeepalive || table.routes.mayKeepAlive({ upstream, operation: name, keyIds });
}

/** Gemini says it in the path; without `alt=sse` its stream is an array, which has no comments. */
function isStreamPath(path: string, query: URLSearchParams): boolean {
  return path.endsWith(':streamGenerateContent') && query.get('alt') === 'sse';
}

type Read = Pick<Located, 'model' | 'isStream' | 'body'> & {
  readonly kind: 'found' | 'absent' | 'hidden';
};

/** Reads the body until its model is known, for as long as the caller is there and willing to wait. */
async function readBody(
  { request, caller, bodyWaitMs, after }: Incoming,
  of: Omit<Search, 'ownKey'>,
): Promise<Read | ErrorReply | 'left'> {
  const search = { ...of, ownKey: caller.credentials.gatewayKey };
  const stop = new AbortController();
  const abort = (): void => stop.abort();
  if (request.signal.aborted) abort();
  request.signal.addEventListener('abort', abort, { once: true });
  const callOff = after(bodyWaitMs, abort);
  const read = await readModel(request, bodyBudget, stop.signal, search);
  callOff();
  if (read.kind === 'unreadable') return { reason: 'body_unreadable', message: read.message };
  if (read.kind !== 'aborted') return read;
  if (request.signal.aborted) return 'left';
  const help =
    search.wantsModel && search.proof === null
      ? ' The header headgate-model spares the reading.'
      : '';
  const message = `The body could not be read within ${bodyWaitMs} ms.${help}`;
  return { reason: 'queue_timeout', message };
}

/** A call to `/v1/*`: the upstream is chosen by the header, the model, or the default. */
export async function locateUnified(
  incoming: Incoming,
): Promise<Located | Misplaced | ErrorReply | 'left'> {
  const { request, url, query, table, headers, caller } = incoming;
  const shape = unifiedShape(url.pathname);
  const operation = classify(request.method, url.pathname, query, shape);
  // A count takes no slot, but its upstream is found by its model like that of the call it is for.
  const isCount = operation.name === 'count_tokens' && request.method === 'POST';
  const isInBody = operation.model.from === 'body';
  if (headers.upstream !== null || headers.model !== null || !(isInBody || isCount)) {
    return locateNamed(incoming, shape);
  }
  const wantsStream = isInBody && (headers.wantsKeepalive || table.routes.keepsSomeAlive);
  const proof = isInBody && maybeTrue(table, caller) ? UNSAID : null;
  const search = { wantsModel: true, wantsStream, proof };
  const { earlier } = incoming;
  if (earlier !== null && !suffices(earlier, search)) return changedMeanwhile();
  const read = earlier ?? (await readBody(incoming, search));
  if (read === 'left' || 'reason' in read) return read;
  const { model, isStream, body } = read;
  const chosen = choosePath(incoming, shape, model);
  if ('reason' in chosen) return { ...chosen, read: { ...read, search } };
  const { upstream, path, prefix } = chosen;
  const located: Located = {
    upstream,
    path,
    operation: classify(request.method, path, query, upstream.dialect),
    model,
    isProven: proof !== null,
    said: null,
    isStream,
    body,
  };
  const { isTrue } = modelRule(table, caller, upstream, located.operation);
  if (!isTrue) unprove(body);
  return withoutPrefix({ ...located, isProven: isTrue && proof !== null }, prefix);
}

/** Whether all was looked for that is to be known. */
function suffices({ search: had }: EarlierRead, wanted: EarlierRead['search']): boolean {
  return (had.wantsStream || !wanted.wantsStream) && (had.proof !== null || wanted.proof === null);
}

/** Of a call nothing is left that it could be routed anew with. */
export function changedMeanwhile(): ErrorReply {
  const message = 'The configuration has changed while the call was read. Send it again.';
  return { reason: 'limiter_unavailable', message };
}

/** Of a call whose upstream goes by the model in its body, that model must be found. */
const UNSAID: Proof = { isBound: true, against: () => null };

/** A call whose headers say where it goes, or of whose body nothing says so. */
async function locateNamed(
  incoming: Incoming,
  shape: UnifiedShape,
): Promise<Located | ErrorReply | 'left'> {
  const { headers } = incoming;
  const chosen = choosePath(incoming, shape, headers.model);
  if ('reason' in chosen) return chosen;
  const { upstream, path, prefix } = chosen;
  const said = headers.model?.slice(prefix.length) ?? null;
  const of = { ...incoming, headers: { ...headers, model: said } };
  const located = await locateDirect(of, upstream, path);
  if (located === 'left' || 'reason' in located || located.model === said) return located;
  return withoutPrefix(located, prefix);
}

/** The call with the prefix gone that named its upstream in front of the body's model. */
function withoutPrefix(located: Located, prefix: string): Located | ErrorReply {
  const { body, model } = located;
  if (prefix === '' || model?.toLowerCase().startsWith(prefix.toLowerCase()) !== true) {
    return located;
  }
  const stripped = body.withoutModelPrefix(prefix.length);
  if (stripped === null) {
    body.discard();
    const message = `The prefix ${prefix} could not be removed from the body's model. Send the model without it and name the upstream in the header headgate-upstream.`;
    return { reason: 'body_unreadable', message };
  }
  return { ...located, model: model.slice(prefix.length), body: stripped };
}

/** A located call by a newer configuration, which may want to know a model that nobody read yet. */
export async function relocate(
  incoming: Incoming,
  located: Located,
): Promise<Located | ErrorReply | 'left'> {
  const { table, request, caller, headers } = incoming;
  const upstream = table.upstreams.get(located.upstream.id);
  if (upstream === undefined) {
    located.body.discard();
    const message = `The upstream ${located.upstream.id} has been removed.`;
    return { reason: 'upstream_unknown', message };
  }
  const { isTrue } = modelRule(table, caller, upstream, located.operation);
  const isKnown = located.isProven || (!isTrue && (located.model !== null || request.bodyUsed));
  if (isKnown) return { ...located, upstream };
  const again = {
    ...incoming,
    request: asRequest(request, located.body),
    headers: { ...headers, model: located.said },
  };
  return locateDirect(again, upstream, located.path);
}

/** A request with what is there of its body, to be read once more. */
function asRequest(request: Request, body: OutgoingBody): Request {
  const { url, method, signal } = request;
  const headers = new Headers(request.headers);
  if (body.contentLength === null) headers.delete('content-length');
  else headers.set('content-length', String(body.contentLength));
  // It is looked at anew.
  body.watch?.stop();
  const again = new Request(url, { method, headers, body: body.open(), signal });
  // Of bytes the request has a copy.
  if ('bytes' in body) body.discard();
  return again;
}

interface Chosen {
  readonly upstream: Upstream;
  /** Behind the upstream's base URL. */
  readonly path: string;
  /** What stands in front of the model to name the upstream. */
  readonly prefix: string;
}

/** Where a unified call goes. */
function choosePath(
  { table, url, headers }: Incoming,
  shape: UnifiedShape,
  model: string | null,
): Chosen | ErrorReply {
  const choice = choose(table, { header: headers.upstream, model, shape });
  if ('reason' in choice) return choice;
  const path = unifiedPath(choice.upstream, shape, url.pathname);
  return path === null ? noSuchShape(choice.upstream, shape) : { ...choice, path };
}

function choose(
  { upstreams, snapshot }: RoutingTable,
  call: Parameters<typeof chooseUpstream>[0],
): { readonly upstream: Upstream; readonly prefix: string } | ErrorReply {
  const choice = chooseUpstream(call, upstreams, snapshot.config.default_upstream);
  switch (choice.kind) {
    case 'found':
      return choice;
    case 'ambiguous':
      return {
        reason: 'model_ambiguous',
        message: `Several upstreams serve this model: ${choice.ids.join(', ')}. Name one in the header headgate-upstream, or in front of the model as in ${choice.ids[0] ?? ''}/<model>.`,
      };
    case 'unknown':
      return {
        reason: call.model === null || call.header !== null ? 'upstream_unknown' : 'model_unknown',
        message: `No upstream was found for this call. Tried: ${choice.tried.join('; ')}.`,
      };
  }
}

function noSuchShape(upstream: Upstream, shape: Dialect): ErrorReply {
  const message = `The upstream ${upstream.id} has no routes of the ${shape} dialect, and Headgate does not translate.`;
  return { reason: 'upstream_unknown', message };
}

function pathModel(operation: Operation): string | null {
  return operation.model.from === 'path' ? operation.model.value : null;
}
