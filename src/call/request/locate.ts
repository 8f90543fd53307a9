import type { Upstream } from '../../contract/config/upstream.ts';
import type { UnifiedShape } from '../../routing/upstreams.ts';
import {
  referenceInPath,
  UNKNOWN_NAME,
  repeatsVersion,
  type Operation,
} from '../../upstream/operation/operation.ts';
import {
  classifyUpgrade,
  isReadSession,
  isResponses,
  modelsInUrl,
  referenceInUrl,
} from '../../upstream/operation/upgrades.ts';
import { renameModel } from '../../upstream/body/json-model-scan.ts';
import { mayHoldKeys, unreadBody, type BodyProof } from '../../upstream/body/request-body.ts';
import {
  LEFT,
  rejected,
  type EarlierRead,
  type CallerLeft,
  type Rejected,
} from '../results/result.ts';
import { endpointAsBase, noUpstream } from './base-url.ts';
import { splitPath, type AuthenticatedCall } from './call.ts';
import { choosePath, isUnified, unifiedShape, type ChosenPath } from './choose-path.ts';
import {
  changedMeanwhile,
  isStreamPath,
  looksIntoBody,
  mayStream,
  readBody,
  REQUIRES_MODEL,
  againstQuery,
  disagreement,
  maybeTrue,
  modelRule,
  proofOf,
  referredPath,
  severalInPath,
} from './find-model.ts';
import { homeUpstream, namesMade } from './home-upstream.ts';
import { modelNamedBy, operationAt, operationOf } from './operation-of.ts';
import {
  isUpgrade,
  referredSession,
  severalModels,
  unreadSession,
  missingModel,
  unserved,
} from './upgrade.ts';

export interface Located {
  readonly kind: 'located';
  readonly upstream: Upstream;
  /** Relative to the upstream's base URL. */
  readonly path: string;
  readonly operation: Operation;
  /** null if it is unknown, because it is not needed or the call names none. */
  readonly model: string | null;
  /** Whether it is the model that the upstream will read. Also true if the call shows none. */
  readonly isProven: boolean;
  /** The model that the header names, as this upstream calls it. */
  readonly headerModel: string | null;
  /** How the upstream was chosen. null if the path names it. */
  readonly chosenBy: ChosenBy | null;
  /** Whether the call requests an event stream. Determined only if comments may be sent while it is queued. */
  readonly isStream: boolean;
}

interface ChosenBy {
  readonly model: string | null;
  readonly prefix: string;
  /** Id of the upstream that created the object of the call. null if the choice did not depend on it. */
  readonly home: string | null;
}

/** Finds the upstream of a call. `earlier` is what was read of its body for an older configuration. */
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

/** Locates a call to `/{upstream}/*`. Its body is read only if its groups or key depend on the model. */
async function locateDirect(
  call: AuthenticatedCall,
  upstream: Upstream,
  path: string,
): Promise<Located | Rejected | CallerLeft> {
  const { request, query, table, headers } = call;
  const operation = operationOf(call, upstream, path);
  const rule = modelRule(call, upstream, path, operation);
  const headerModel = headers.model;
  const shown = operation.model.from === 'path' ? operation.model.value : null;
  if (shown !== null && rule.isTrue) {
    const reply = disagreement({ headerModel, shown, where: 'path' }, upstream, table);
    if (reply !== null) return rejected(reply);
  }
  const several = rule.isTrue ? severalInPath(call, operation, path, upstream) : null;
  if (several !== null) return rejected(several);
  const asked = { headerModel, upstream, path, operation };
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
  // The upstream serves the model in the path. The header only names one that the path does not show.
  const known = shown ?? headerModel;
  if (rule.isWanted && known === null && operation.socket === 'session') {
    return rejected(missingModel(path));
  }
  const located = {
    kind: 'located',
    upstream,
    path,
    operation,
    headerModel,
    chosenBy: null,
  } as const;
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
  const counted = model ?? (isProven ? headerModel : null);
  const other = againstQuery(rule, asked, counted, call);
  if (other !== null) return rejected(other);
  return { ...located, isStream: read.isStream, model: counted, isProven };
}

/** Locates a call to `/v1/*`. The header, the model or the default selects the upstream. */
async function locateUnified(
  call: AuthenticatedCall,
  earlier: EarlierRead | null,
): Promise<Located | Rejected | CallerLeft> {
  const { method, url, table, headers } = call;
  const shape = unifiedShape(url.pathname);
  if (isUpgrade(call)) return locateSocket(call, shape);
  const operation = operationAt(call, url.pathname, shape);
  // A count takes no slot, but its model selects the upstream, as for the call that it counts.
  const isCount = operation.name === 'count_tokens' && method === 'POST';
  const isInBody = operation.model.from === 'body';
  if (headers.upstream !== null || headers.model !== null || !(isInBody || isCount)) {
    const named = headers.model ?? modelNamedBy(url.pathname);
    const goesHome = headers.upstream === null && named === null && operation.name !== UNKNOWN_NAME;
    const home = goesHome ? await homeUpstream(call, shape) : null;
    return isRejected(home) ? home : locateNamed(call, shape, named, home);
  }
  const wantsStream = isInBody && (headers.wantsKeepalive || table.routes.keepsSomeAlive);
  const proof = isInBody && maybeTrue(call) ? REQUIRES_MODEL : null;
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
  // The remix of a video names the video instead of a model.
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
  const proofThere = proofOf(rule, { ...located, headerModel: null }, call);
  const reference = isProven && found === 'absent' ? storedIn(located, proofThere) : null;
  if (reference !== null && proofThere.isBound) return rejected(referredPath(reference));
  const inQuery = againstQuery(
    rule,
    { headerModel: null, upstream, path, operation: there },
    model,
    call,
  );
  if (inQuery !== null) return rejected(inQuery);
  const chosenBy = { model, prefix, home };
  return withoutPrefix(call, { ...located, headerModel: null, chosenBy, isStream }, prefix);
}

/**
 * The stored object in the path that implies the model of a call without a model in its body. null if there is none, or
 * it is allowed.
 */
function storedIn(
  { path, operation }: Pick<Located, 'path' | 'operation'>,
  proof: BodyProof,
): string | null {
  const reference = operation.model.from === 'body' ? referenceInPath(path) : null;
  return reference === null || proof.allowsReferences() ? null : reference;
}

/** Locates a WebSocket. Only its headers and URL can name the upstream, because it has sent nothing else yet. */
async function locateSocket(
  call: AuthenticatedCall,
  shape: UnifiedShape,
): Promise<Located | Rejected | CallerLeft> {
  const { url, query } = call;
  // Which sockets the upstream serves is known only once it is chosen.
  const { model } = classifyUpgrade(url.pathname, query, { dialect: shape, sockets: 'turns' });
  const shown = model.from === 'path' ? model.value : null;
  const located = await locateNamed(call, shape, call.headers.model ?? shown);
  if (located.kind !== 'rejected' || !isResponses(url.pathname)) return located;
  // Its models are in its messages. Over HTTP each message finds its upstream.
  return rejected(unserved(url));
}

/** Locates a call by its headers or URL, or to the default. `named` is the model that they name. */
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
  const headerModel = headers.model?.slice(prefix.length) ?? null;
  const of = { ...call, headers: { ...headers, model: headerModel } };
  const direct = await locateDirect(of, upstream, path);
  if (direct.kind !== 'located') return direct;
  const located = { ...direct, chosenBy: { model: named, prefix, home } };
  return located.model === headerModel ? located : withoutPrefix(call, located, prefix);
}

/** Adds advice to the rejection of a call that names an object by id whose upstream is unknown. */
function withCure(
  { url, headers }: AuthenticatedCall,
  from: Rejected,
  named: string | null,
): Rejected {
  const { reply } = from;
  const isById = named === null && headers.upstream === null && namesMade(url.pathname);
  if (reply.reason !== 'upstream_unknown' || !isById) return from;
  const path = url.pathname.slice(0, 100);
  const message = `${reply.message} Headgate finds an object by its id if the same key created it at \`/v1\` within the last 30 days and the answer reported that it is stored. Name the upstream that created it in the \`headgate-upstream\` header, or in the path: \`/{upstream}${path}\`.`;
  return { ...from, reply: { ...reply, message } };
}

function isRejected(home: string | null | Rejected): home is Rejected {
  return home !== null && typeof home === 'object';
}

/** The call, as if it named the upstream that created its object. */
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
    const message = `model: the prefix \`${prefix}\` cannot be removed from the URL of a WebSocket. Send the model without it and name the upstream in the path, as in \`/${located.upstream.id}/v1/realtime\`.`;
    return rejected({ reason: 'model_unknown', message });
  }
  const bare = model.slice(prefix.length);
  const dropped = body.dropModelPrefix(prefix.length)
    ? 'done'
    : await body.unpack(request, (bytes) => renameModel(bytes, bare));
  if (dropped === 'aborted') return body.fault === null ? LEFT : rejected(body.fault);
  if (dropped === 'no') {
    const message = `The prefix \`${prefix}\` could not be removed from the model in the body. Send the model without it and name the upstream in the \`headgate-upstream\` header.`;
    return rejected({ reason: 'body_unreadable', message });
  }
  return { ...located, model: bare };
}

/** Locates a call by a newer configuration, which may depend on a model that was not read yet. */
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
  // A body that was kept for further attempts was read, but not searched.
  const wasSearched = request.bodyUsed && !body.isKept;
  const isKnown = located.isProven || (!isTrue && (located.model !== null || wasSearched));
  if (isKnown || !operation.limited) return { ...located, upstream, path, operation };
  const again = {
    ...call,
    request: body.readAgain(request),
    headers: { ...headers, model: located.headerModel },
  };
  const direct = await locateDirect(again, upstream, path);
  return direct.kind === 'located' ? { ...direct, chosenBy: located.chosenBy } : direct;
}

/** The upstream and path of a call by a newer configuration. */
function placeNow(
  call: AuthenticatedCall,
  { upstream: { id }, path, chosenBy }: Located,
): Omit<ChosenPath, 'prefix'> | Rejected {
  if (chosenBy === null) {
    const upstream = call.table.upstreams.get(id);
    if (upstream !== undefined) return { kind: 'chosen', upstream, path };
    const message = `Upstream \`${id}\` was removed from the configuration. Use another upstream.`;
    return rejected({ reason: 'upstream_unknown', message });
  }
  const at = atHome(call, chosenBy.home);
  const chosen = choosePath(at, unifiedShape(call.url.pathname), chosenBy.model);
  // The prefix was already removed from the body.
  if (chosen.kind === 'chosen' && chosen.prefix !== chosenBy.prefix) return changedMeanwhile();
  return chosen;
}
