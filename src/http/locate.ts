import type { Refusal } from '../contract/reasons.ts';
import type { CallerHeaders } from '../contract/request-headers.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { Upstream } from '../contract/upstream.ts';
import { chooseUpstream, unifiedPath, type UnifiedShape } from '../routing/choose-upstream.ts';
import type { Schedule } from '../upstream/call-clock.ts';
import { classify, type Operation } from '../upstream/operation.ts';
import { readModel, unreadBody, type OutgoingBody } from '../upstream/request-body.ts';
import { bodyBudget } from './isolate.ts';
import type { RoutingTable } from './snapshots.ts';

/** Where a call goes, and what it asks for. */
export interface Located {
  readonly upstream: Upstream;
  /** Path behind the upstream's base URL. */
  readonly path: string;
  readonly operation: Operation;
  /** Null: not known, because nobody needs it or the call names none. */
  readonly model: string | null;
  /** Whether an event stream is asked for. Looked for only where comments may be sent meanwhile. */
  readonly isStream: boolean;
  readonly body: OutgoingBody;
}

export interface Incoming {
  readonly request: Request;
  readonly url: URL;
  readonly query: URLSearchParams;
  readonly table: RoutingTable;
  readonly headers: Pick<CallerHeaders, 'upstream' | 'model' | 'wantsKeepalive'>;
  readonly keyIds: readonly string[];
  /** How long the reading of a body may wait for its turn, in milliseconds. */
  readonly bodyWaitMs: number;
  readonly after: Schedule;
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

/** A call to `/{upstream}/*`: its body is read only if some group needs the model. */
export async function locateDirect(
  incoming: Incoming,
  upstream: Upstream,
  path: string,
): Promise<Located | Refusal | 'left'> {
  const { request, query, table, headers, keyIds } = incoming;
  const operation = classify(request.method, path, query, upstream.dialect);
  // What the path shows is what the upstream will serve: the header only says what is not shown.
  const known = pathModel(operation) ?? headers.model;
  const located = { upstream, path, operation };
  const call = { upstream, operation: operation.name, keyIds };
  const isJson = operation.limited && operation.model.from === 'body';
  const wantsModel = isJson && known === null && table.routes.needsModel(call);
  const wantsStream = isJson && (headers.wantsKeepalive || table.routes.mayKeepAlive(call));
  if (!wantsModel && !wantsStream) {
    const isStream = isStreamPath(path, query);
    return { ...located, model: known, isStream, body: unreadBody(request) };
  }
  const read = await readBody(incoming, wantsStream);
  if (read === 'left' || 'reason' in read) return read;
  return { ...located, ...read, model: known ?? read.model };
}

/** Gemini says it in the path; without `alt=sse` its stream is an array, which has no comments. */
function isStreamPath(path: string, query: URLSearchParams): boolean {
  return path.endsWith(':streamGenerateContent') && query.get('alt') === 'sse';
}

type Read = Pick<Located, 'model' | 'isStream' | 'body'>;

/** Reads the body until its model is known, for as long as the caller is there and willing to wait. */
async function readBody(
  { request, bodyWaitMs, after }: Incoming,
  wantsStream: boolean,
): Promise<Read | Refusal | 'left'> {
  const stop = new AbortController();
  const abort = (): void => stop.abort();
  if (request.signal.aborted) abort();
  request.signal.addEventListener('abort', abort, { once: true });
  const callOff = after(bodyWaitMs, abort);
  const read = await readModel(request, bodyBudget, stop.signal, wantsStream);
  callOff();
  if (read.kind === 'unreadable') return { reason: 'body_unreadable', message: read.message };
  if (read.kind !== 'aborted') {
    const { model, isStream, body } = read;
    return { model, isStream, body };
  }
  if (request.signal.aborted) return 'left';
  return {
    reason: 'queue_timeout',
    message: `The body could not be read within ${bodyWaitMs} ms. The header headgate-model spares the reading.`,
  };
}

/** A call to `/v1/*`: the upstream is chosen by the header, the model, or the default. */
export async function locateUnified(incoming: Incoming): Promise<Located | Refusal | 'left'> {
  const { request, url, query, table, headers } = incoming;
  const shape = unifiedShape(url.pathname);
  if (headers.upstream !== null) {
    const choice = choose(table, { header: headers.upstream, model: headers.model, shape });
    if ('reason' in choice) return choice;
    return toUpstream(incoming, choice.upstream, shape);
  }
  const operation = classify(request.method, url.pathname, query, shape);
  let model = headers.model;
  let isStream = false;
  let body = unreadBody(request);
  // A count takes no slot, but its upstream is found by its model like that of the call it is for.
  const isCount = operation.name === 'count_tokens' && request.method === 'POST';
  const isInBody = operation.model.from === 'body';
  const wantsStream = isInBody && (headers.wantsKeepalive || table.routes.keepsSomeAlive);
  if (wantsStream || (model === null && (isInBody || isCount))) {
    const read = await readBody(incoming, wantsStream);
    if (read === 'left' || 'reason' in read) return read;
    ({ isStream, body } = read);
    model ??= read.model;
  }
  const choice = choose(table, { header: null, model, shape });
  if ('reason' in choice) {
    body.discard();
    return choice;
  }
  const { upstream, prefix } = choice;
  const path = unifiedPath(upstream, shape, url.pathname);
  if (path === null) {
    body.discard();
    return noSuchShape(upstream, shape);
  }
  if (prefix !== '' && headers.model === null) {
    const stripped = body.withoutModelPrefix(prefix.length);
    if (stripped === null) {
      body.discard();
      const message = `The prefix ${prefix} could not be removed from the body's model. Send the model without it and name the upstream in the header headgate-upstream.`;
      return { reason: 'body_unreadable', message };
    }
    body = stripped;
  }
  return {
    upstream,
    path,
    operation: classify(request.method, path, query, upstream.dialect),
    model: model?.slice(prefix.length) ?? null,
    isStream,
    body,
  };
}

/** A located call by a newer configuration, which may want to know a model that nobody read yet. */
export async function relocate(
  incoming: Incoming,
  located: Located,
): Promise<Located | Refusal | 'left'> {
  const { table, request } = incoming;
  const upstream = table.upstreams.get(located.upstream.id);
  if (upstream === undefined) {
    located.body.discard();
    const message = `The upstream ${located.upstream.id} has been removed.`;
    return { reason: 'upstream_unknown', message };
  }
  if (located.model !== null || request.bodyUsed) return { ...located, upstream };
  return locateDirect(incoming, upstream, located.path);
}

async function toUpstream(
  incoming: Incoming,
  upstream: Upstream,
  shape: UnifiedShape,
): Promise<Located | Refusal | 'left'> {
  const path = unifiedPath(upstream, shape, incoming.url.pathname);
  if (path === null) return noSuchShape(upstream, shape);
  return locateDirect(incoming, upstream, path);
}

function choose(
  { upstreams, snapshot }: RoutingTable,
  call: Parameters<typeof chooseUpstream>[0],
): { readonly upstream: Upstream; readonly prefix: string } | Refusal {
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

function noSuchShape(upstream: Upstream, shape: Dialect): Refusal {
  const message = `The upstream ${upstream.id} has no routes of the ${shape} dialect, and Headgate does not translate.`;
  return { reason: 'upstream_unknown', message };
}

function pathModel(operation: Operation): string | null {
  return operation.model.from === 'path' ? operation.model.value : null;
}
