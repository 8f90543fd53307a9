import type { Upstream } from '../contract/config/upstream.ts';
import type { UnifiedShape } from '../routing/choose-upstream.ts';
import { referenceInPath, UNKNOWN_NAME, type Operation } from '../upstream/operation/operation.ts';
import {
  classifyUpgrade,
  isReadSession,
  isResponses,
  modelsInUrl,
  referenceInUrl,
} from '../upstream/operation/upgrades.ts';
import { renameModel } from '../upstream/body/rename-model.ts';
import { mayHoldKeys, unreadBody, type BodyProof } from '../upstream/body/request-body.ts';
import { repeatsVersion } from '../upstream/operation/clean-path.ts';
import { endpointAsBase, noUpstream } from './base-url.ts';
import type { AuthenticatedCall } from './call.ts';
import { splitPath } from './called-url.ts';
import { choosePath, isUnified, unifiedShape, type ChosenPath } from './choose-path.ts';
import {
  changedMeanwhile,
  isStreamPath,
  looksIntoBody,
  mayStream,
  readBody,
  UNSAID,
} from './find-model.ts';
import {
  againstQuery,
  disagreement,
  maybeTrue,
  modelRule,
  proofOf,
  referredPath,
  severalInPath,
} from './model-rule.ts';
import { homeUpstream, namesMade } from './made/home-upstream.ts';
import { modelNamedBy } from './models/models-request.ts';
import { operationAt, operationOf } from './operation-of.ts';
import { LEFT, rejected, type EarlierRead, type CallerLeft, type Rejected } from './result.ts';
import {
  isUpgrade,
  referredSession,
  severalModels,
  unreadSession,
  unsaidModel,
  unserved,
} from './socket/upgrade.ts';

/** Where a call goes, and what it asks for. */
export interface Located {
  readonly kind: 'located';
  readonly upstream: Upstream;
  /** Path behind the upstream's base URL. */
  readonly path: string;
  readonly operation: Operation;
  /** Null: not known, because nobody needs it or the call names none. */
  readonly model: string | null;
  /** True: it is the one that the upstream will read, or the call shows none. */
  readonly isProven: boolean;
  /** Name that the header has for the model, at this upstream. */
  readonly said: string | null;
  /** The name that its upstream was chosen by, and the prefix of that which named it; null: the path names it. */
  readonly chosenBy: ChosenBy | null;
  /** Whether an event stream is asked for. Looked for only where comments may be sent meanwhile. */
  readonly isStream: boolean;
}

/** Facts by which the upstream of a call to `/v1` was chosen. */
interface ChosenBy {
  readonly model: string | null;
  readonly prefix: string;
  /** Id of the upstream that made what the call is about; null: it went by something else. */
  readonly home: string | null;
}

/** Finds out where a call goes. `earlier`: what was read of its body for an older configuration. */
export function locate(
  call: AuthenticatedCall,
  earlier: EarlierRead | null,
): Promise<Located | Rejected | CallerLeft> {
  const { url, table } = call;
  const { id, rest } = splitPath(url.pathname);
  const goesByModel = isUnified(url);
  const upstream = goesByModel ? undefined : table.upstreams.get(id);
  const doubled =
    upstream?.dialect === 'opaque' ? null : endpointAsBase(call, upstream?.id ?? null);
  if (doubled !== null) return Promise.resolve(rejected(doubled));
  if (goesByModel) return locateUnified(call, earlier);
  if (upstream === undefined) return Promise.resolve(rejected(noUpstream(call)));
  const { baseUrl, dialect } = upstream;
  const path = repeatsVersion(baseUrl, rest, dialect) ? splitPath(rest).rest : rest;
  return locateDirect(call, upstream, path);
}

/** Locates a call to `/{upstream}/*`: its body is read only if something goes by the model. */
async function locateDirect(
  call: AuthenticatedCall,
  upstream: Upstream,
  path: string,
): Promise<Located | Rejected | CallerLeft> {
  const { request, query, table, headers } = call;
  const operation = operationOf(call, upstream, path);
  const rule = modelRule(call, upstream, path, operation);
  const said = headers.model;
  const shown = operation.model.from === 'path' ? operation.model.value : null;
  if (shown !== null && rule.isTrue) {
    const reply = disagreement({ said, shown, where: 'path' }, upstream, table);
    if (reply !== null) return rejected(reply);
  }
  const several = rule.isTrue ? severalInPath(call, operation, path, upstream) : null;
  if (several !== null) return rejected(several);
  const asked = { said, upstream, path, operation };
  const inQuery = shown === null ? null : againstQuery(rule, asked, shown, call);
  if (inQuery !== null) return rejected(inQuery);
  if (rule.isWanted && rule.isTrue && operation.socket === 'session') {
    if (!isReadSession(path)) return rejected(unreadSession());
    const models = modelsInUrl(path, query);
    if (models.length > 1) return rejected(severalModels(models));
    const reference = referenceInUrl(path, query);
    if (reference !== null && !proofOf(rule, asked, call).allowsReferences()) {
      return rejected(referredSession(reference));
    }
  }
  // What the path shows is what the upstream will serve: the header only says what is not shown.
  const known = shown ?? said;
  if (rule.isWanted && known === null && operation.socket === 'session') {
    return rejected(unsaidModel(path));
  }
  const located = { kind: 'located', upstream, path, operation, said, chosenBy: null } as const;
  const wantsModel = looksIntoBody(operation, rule, known !== null);
  const wantsStream = mayStream(call, upstream, path, operation);
  if (!wantsModel && !wantsStream && !mayHoldKeys(request)) {
    call.body.hold(unreadBody(request));
    const isStream = isStreamPath(path, query);
    return { ...located, model: known, isProven: shown !== null, isStream };
  }
  const proof = wantsModel && rule.isTrue ? proofOf(rule, located, call) : null;
  const search = { wantsModel: wantsModel || wantsStream, wantsStream, proof };
  const read = await readBody(call, search);
  if (read.kind !== 'read') return read;
  const { model } = read;
  if (proof === null) {
    const isStream = read.isStream || isStreamPath(path, query);
    return { ...located, isStream, model: known ?? model, isProven: shown !== null };
  }
  const against = model === null ? null : proof.against(model);
  if (against !== null) return rejected(against);
  const reference = read.found === 'absent' ? storedIn(located, proof) : null;
  if (reference !== null && proof.isBound) return rejected(referredPath(reference));
  const isProven = read.found !== 'hidden' && reference === null;
  const counted = model ?? (isProven ? said : null);
  const other = againstQuery(rule, asked, counted, call);
  if (other !== null) return rejected(other);
  return { ...located, isStream: read.isStream, model: counted, isProven };
}

/** Locates a call to `/v1/*`: the upstream is chosen by the header, the model, or the default. */
async function locateUnified(
  call: AuthenticatedCall,
  earlier: EarlierRead | null,
): Promise<Located | Rejected | CallerLeft> {
  const { method, url, table, headers } = call;
  const shape = unifiedShape(url.pathname);
  if (isUpgrade(call)) return locateSocket(call, shape);
  const operation = operationAt(call, url.pathname, shape);
  // A count takes no slot, but its upstream is found by its model like that of the call it is for.
  const isCount = operation.name === 'count_tokens' && method === 'POST';
  const isInBody = operation.model.from === 'body';
  if (headers.upstream !== null || headers.model !== null || !(isInBody || isCount)) {
    const named = headers.model ?? modelNamedBy(url.pathname);
    const goesHome = headers.upstream === null && named === null && operation.name !== UNKNOWN_NAME;
    const home = goesHome ? await homeUpstream(call, shape) : null;
    return isRejected(home) ? home : locateNamed(call, shape, named, home);
  }
  const wantsStream = isInBody && (headers.wantsKeepalive || table.routes.keepsSomeAlive);
  const proof = isInBody && maybeTrue(call) ? UNSAID : null;
  if (earlier !== null) {
    const lacksStream = wantsStream && !earlier.soughtStream;
    const lacksProof = proof !== null && !earlier.soughtProof;
    if (lacksStream || lacksProof) return changedMeanwhile();
  }
  const search = { wantsModel: true, wantsStream, proof };
  const read =
    earlier === null ? await readBody(call, search) : ({ kind: 'read', ...earlier } as const);
  if (read.kind !== 'read') return read;
  const { found, model, isStream } = read;
  // The remix of a video names no model, but the video.
  const goesHome = model === null && referenceInPath(url.pathname) !== null;
  const home = goesHome ? await homeUpstream(call, shape) : null;
  if (isRejected(home)) return home;
  const chosen = choosePath(atHome(call, home), shape, model);
  if (chosen.kind === 'rejected') {
    return rejected(chosen.reply, {
      found,
      model,
      isStream,
      soughtStream: wantsStream,
      soughtProof: proof !== null,
    });
  }
  const { upstream, path, prefix } = chosen;
  const there = operationOf(call, upstream, path);
  const rule = modelRule(call, upstream, path, there);
  const { isTrue } = rule;
  const several = isTrue ? severalInPath(call, there, path, upstream) : null;
  if (several !== null) return rejected(several);
  if (!isTrue) call.body.unprove();
  const isProven = isTrue && proof !== null;
  const located = { kind: 'located', upstream, path, operation: there, model, isProven } as const;
  const proofThere = proofOf(rule, { ...located, said: null }, call);
  const reference = isProven && found === 'absent' ? storedIn(located, proofThere) : null;
  if (reference !== null && proofThere.isBound) return rejected(referredPath(reference));
  const inQuery = againstQuery(rule, { said: null, upstream, path, operation: there }, model, call);
  if (inQuery !== null) return rejected(inQuery);
  const chosenBy = { model, prefix, home };
  return withoutPrefix(call, { ...located, said: null, chosenBy, isStream }, prefix);
}

/** Finds a stored object with a model in the path of a call without a model in its body; null: none, or it is allowed. */
function storedIn(
  { path, operation }: Pick<Located, 'path' | 'operation'>,
  proof: BodyProof,
): string | null {
  const reference = operation.model.from === 'body' ? referenceInPath(path) : null;
  return reference === null || proof.allowsReferences() ? null : reference;
}

/** Locates a WebSocket: its upstream is chosen by what its headers or its URL name, as nothing else is there of it yet. */
async function locateSocket(
  call: AuthenticatedCall,
  shape: UnifiedShape,
): Promise<Located | Rejected | CallerLeft> {
  const { url, query } = call;
  // What the upstream serves over WebSocket is known once it is chosen.
  const { model } = classifyUpgrade(url.pathname, query, { dialect: shape, sockets: 'turns' });
  const shown = model.from === 'path' ? model.value : null;
  const located = await locateNamed(call, shape, call.headers.model ?? shown);
  if (located.kind !== 'rejected' || !isResponses(url.pathname)) return located;
  // Its models stand in its messages: over HTTP each finds its upstream.
  return rejected(unserved(url));
}

/** Locates a call whose headers or URL say where it goes, or of whose body nothing says so. `named`: the model they name. */
async function locateNamed(
  call: AuthenticatedCall,
  shape: UnifiedShape,
  named: string | null,
  home: string | null = null,
): Promise<Located | Rejected | CallerLeft> {
  const { headers } = call;
  const chosen = choosePath(atHome(call, home), shape, named);
  if (chosen.kind === 'rejected') return withCure(call, chosen, named);
  const { upstream, path, prefix } = chosen;
  const said = headers.model?.slice(prefix.length) ?? null;
  const of = { ...call, headers: { ...headers, model: said } };
  const direct = await locateDirect(of, upstream, path);
  if (direct.kind !== 'located') return direct;
  const located = { ...direct, chosenBy: { model: named, prefix, home } };
  return located.model === said ? located : withoutPrefix(call, located, prefix);
}

/** Adds to a rejection what its caller can do where it asks for something by an id whose upstream is not known. */
function withCure(
  { url, headers }: AuthenticatedCall,
  from: Rejected,
  named: string | null,
): Rejected {
  const { reply } = from;
  const isById = named === null && headers.upstream === null && namesMade(url.pathname);
  if (reply.reason !== 'upstream_unknown' || !isById) return from;
  const path = url.pathname.slice(0, 100);
  const message = `${reply.message} What the same key made at /v1 within 30 days is found by its id, unless the answer did not say that it is stored. Name the upstream that made it in the header headgate-upstream, or in the path: /{upstream}${path}.`;
  return { ...from, reply: { ...reply, message } };
}

function isRejected(home: string | null | Rejected): home is Rejected {
  return home !== null && typeof home === 'object';
}

/** A call as if it named the upstream where what it is about was made. */
function atHome(call: AuthenticatedCall, home: string | null): AuthenticatedCall {
  return home === null ? call : { ...call, headers: { ...call.headers, upstream: home } };
}

/** Removes the upstream's prefix from the model in the body. A compressed body is sent uncompressed for that. */
async function withoutPrefix(
  { body, request }: AuthenticatedCall,
  located: Located,
  prefix: string,
): Promise<Located | Rejected | CallerLeft> {
  const { model, operation } = located;
  if (prefix === '' || model?.toLowerCase().startsWith(prefix.toLowerCase()) !== true) {
    return located;
  }
  if (operation.socket !== undefined) {
    const message = `model: the prefix ${prefix} cannot be taken off in the URL of a WebSocket. Send the model without it and name the upstream in the path, as in /${located.upstream.id}/v1/realtime.`;
    return rejected({ reason: 'model_unknown', message });
  }
  const bare = model.slice(prefix.length);
  const dropped = body.dropModelPrefix(prefix.length)
    ? 'done'
    : await body.unpack(request, (bytes) => renameModel(bytes, bare));
  if (dropped === 'aborted') return body.fault === null ? LEFT : rejected(body.fault);
  if (dropped === 'no') {
    const message = `The prefix ${prefix} could not be removed from the body's model. Send the model without it and name the upstream in the header headgate-upstream.`;
    return rejected({ reason: 'body_unreadable', message });
  }
  return { ...located, model: bare };
}

/** Locates a call by a newer configuration, which may want to know a model that nobody read yet. */
export async function relocate(
  call: AuthenticatedCall,
  located: Located,
): Promise<Located | Rejected | CallerLeft> {
  const { request, headers, body } = call;
  const place = placeNow(call, located);
  if (place.kind === 'rejected') return place;
  const { upstream, path } = place;
  const operation = operationOf(call, upstream, path);
  const { isTrue } = modelRule(call, upstream, path, operation);
  // One that was kept to be sent again was read, but nobody has searched it.
  const wasSearched = request.bodyUsed && !body.isKept;
  const isKnown = located.isProven || (!isTrue && (located.model !== null || wasSearched));
  if (isKnown || !operation.limited) return { ...located, upstream, path, operation };
  const again = {
    ...call,
    request: body.readAgain(request),
    headers: { ...headers, model: located.said },
  };
  const direct = await locateDirect(again, upstream, path);
  return direct.kind === 'located' ? { ...direct, chosenBy: located.chosenBy } : direct;
}

/** Finds the upstream and the path of a call by a newer configuration. */
function placeNow(
  call: AuthenticatedCall,
  { upstream: { id }, path, chosenBy }: Located,
): Omit<ChosenPath, 'prefix'> | Rejected {
  if (chosenBy === null) {
    const upstream = call.table.upstreams.get(id);
    if (upstream !== undefined) return { kind: 'chosen', upstream, path };
    const message = `The upstream ${id} has been removed.`;
    return rejected({ reason: 'upstream_unknown', message });
  }
  const at = atHome(call, chosenBy.home);
  const chosen = choosePath(at, unifiedShape(call.url.pathname), chosenBy.model);
  // The body is without the prefix by now.
  if (chosen.kind === 'chosen' && chosen.prefix !== chosenBy.prefix) return changedMeanwhile();
  return chosen;
}
