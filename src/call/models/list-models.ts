import { quoted } from '../../core/words/quoted.ts';
import { deleteHeaders, upstreamRequestHeaders } from '../../upstream/transfer/headers.ts';
import { dropAccounts, keyToPlace, placeCredentials } from '../../upstream/transfer/credentials.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { ACCOUNT_SELECTORS } from '../../providers/accounts.ts';
import { modelsAt, configuredModels } from '../../routing/upstreams.ts';
import { forbiddenFor, isUpstreamAllowed } from '../../routing/key-access.ts';
import { OVERRIDE_HEADERS } from '../../upstream/operation/readings.ts';
import { LIMITED_OPERATIONS } from '../../upstream/operation/operations-table.ts';
import { BoundedMap } from '../../core/parts/bounded-map.ts';
import { logEvent } from '../../runtime/log.ts';
import { steadyClock } from '../../runtime/async.ts';
import { foreignPage, type AuthenticatedCall } from '../request/call.ts';
import type { UpstreamKey } from '../identity/authenticate.ts';
import { goesByMembers, keyWithoutSlot, secretOfMember } from '../request/key-without-slot.ts';
import { hiddenKeyOf, placementsOf, routedCall } from '../plan/plan.ts';
import { rejected, type Rejected } from '../results/result.ts';
import { fetcherOf } from '../plan/target.ts';
import { modelLists, askModels, type ModelListFault, type Listing } from './model-lists.ts';
import type { Model } from './model-page.ts';

/**
 * How long callers wait for the upstreams' lists. Some clients give up after 3 s, and the answer must arrive within 2
 * s.
 */
const LIST_WAIT_MS = 1_800;

/** Anthropic lists nothing without it, and clients of the other dialect do not send it. */
const ANTHROPIC_VERSION = 'anthropic-version';
const ANTHROPIC_VERSION_DEFAULT = '2023-06-01';

/** A model that a caller may call through `/v1`, under its name there: `upstream/model`. */
export interface ListedModel {
  readonly id: string;
  readonly upstream: Upstream;
  /** The model as its upstream lists it, under its own id. */
  readonly model: Model;
}

export interface ListedModels {
  readonly models: readonly ListedModel[];
  /** Upstreams whose models are missing, entirely or in part, and why. */
  readonly missing: ReadonlyMap<string, ModelListFault>;
}

/**
 * Lists the models of the upstreams that this caller may use without naming one: upstreams with the operator's key
 * (behind a gateway key), keyless ones, and the default upstream. A caller's own provider key belongs to a single
 * provider, so only the default upstream receives it. For the other upstreams, and for those without a list, the models
 * in the configuration are listed. A gateway key with `groups` sees the upstreams and models that these allow. `only`
 * restricts the list to one upstream.
 */
export async function listModels(
  call: AuthenticatedCall,
  only: Upstream | null = null,
): Promise<ListedModels> {
  const upstreams = only === null ? [...call.table.upstreams.values()] : [only];
  const open = upstreams.filter((upstream) => isOpen(call, upstream));
  const queried = open.filter((upstream) => mayAsk(call, upstream));
  const lists = await Promise.all(queried.map((upstream) => listingOf(upstream, call)));
  const missing = new Map<string, ModelListFault>();
  const models: ListedModel[] = [];
  const unlisted = new Set(open);
  for (const [index, upstream] of queried.entries()) {
    const listing = lists[index];
    if (listing === undefined) continue;
    if (listing.fault !== null) {
      missing.set(upstream.id, listing.fault);
      logMissing(upstream.id, listing.fault);
    }
    if (listing.fault === null || listing.models.length > 0) unlisted.delete(upstream);
    models.push(...listing.models.map((model) => listed(upstream, model)));
  }
  return { models: [...models, ...(await namedModels(unlisted, call))], missing };
}

function listed(upstream: Upstream, model: Model): ListedModel {
  return { id: `${upstream.id}/${model.id}`, upstream, model };
}

function isOpen(
  { caller: { key }, table: { routes } }: AuthenticatedCall,
  upstream: Upstream,
): boolean {
  return isUpstreamAllowed(key, upstream, routes);
}

/** Whether an upstream's list is requested on behalf of this caller. */
function mayAsk(call: AuthenticatedCall, upstream: Upstream): boolean {
  if (modelsAt(upstream) === null) return false;
  if (upstream.id === call.table.snapshot.config.default_upstream) return true;
  if (upstream.isKeyless) return true;
  const secret = upstream.secret ?? secretOfMember(upstream, null, call);
  return goesByMembers(call.caller, upstream) && secret !== null;
}

/** The models in the configuration for these upstreams, as far as the caller has a key for them. */
async function namedModels(
  at: ReadonlySet<Upstream>,
  call: AuthenticatedCall,
): Promise<ListedModel[]> {
  if (at.size === 0) return [];
  const { table } = call;
  const named = configuredModels(table.snapshot.config, table.upstreams);
  const models: ListedModel[] = [];
  for (const { upstream, model } of named) {
    if (!at.has(upstream) || modelsAt(upstream) === null) continue;
    const forbidden = await forbiddenModel(call, upstream, model);
    if (forbidden === null) models.push(listed(upstream, { id: model }));
  }
  return models;
}

/** Rejects a call for a model that the caller may not call, or has no key for. null if it may. */
export async function forbiddenModel(
  call: AuthenticatedCall,
  upstream: Upstream,
  model: string,
): Promise<Rejected | null> {
  const found = await keyWithoutSlot(upstream, model, call);
  if (found.kind === 'rejected') return found;
  if (isOpen(call, upstream) && mayCall(call, upstream, found.key, model)) return null;
  return unknownModel(upstream, model);
}

export function unknownModel({ id }: Upstream, model: string): Rejected {
  const message = `Upstream \`${id}\` lists no model ${quoted(model)} that this key may use. Call \`GET /v1/models\` for the models that it may use.`;
  return rejected({ reason: 'model_unknown', message });
}

/** Returns the models that an upstream lists, of those that the caller may call. */
async function listingOf(upstream: Upstream, call: AuthenticatedCall): Promise<Listing> {
  const found = await keyWithoutSlot(upstream, null, call);
  if (found.kind === 'rejected') return noList(found.reply.reason);
  const { key } = found;
  const foreign = foreignPage(call, upstream, key.injected);
  if (foreign !== null) return noList(foreign.reply.reason);
  const { table, ctx } = call;
  const headers = headersFor(upstream, key, call);
  const url = `${upstream.baseUrl}${modelsAt(upstream) ?? ''}/models`;
  const hidden = await hiddenKeyOf(call, upstream, key);
  const version = table.snapshot.version;
  const owner = `${version} ${upstream.id} ${url} ${key.fingerprint} ${hidden}`;
  const variant = isShared(upstream, key) ? '' : variantOf(headers);
  const request = { fetcher: fetcherOf(upstream.via, call.env), url, headers };
  const list = await modelLists.get(
    { owner, variant, waitMs: LIST_WAIT_MS },
    (report) => askModels({ ...request, dialect: upstream.dialect }, report),
    ctx,
  );
  const models = list.models.filter(({ id }) => mayCall(call, upstream, key, id));
  return { ...list, models };
}

function noList(fault: ModelListFault): Listing {
  return { models: [], chars: 0, fault };
}

/**
 * Whether callers share an upstream's list. The request for a shared list has none of their headers, which could spoil
 * it for others.
 */
function isShared({ isKeyless }: Upstream, { injected }: UpstreamKey): boolean {
  return isKeyless || injected !== null;
}

function headersFor(upstream: Upstream, key: UpstreamKey, call: AuthenticatedCall): Headers {
  const { credentials } = call.caller;
  const { injected } = key;
  const headers = isShared(upstream, key)
    ? new Headers({ 'user-agent': 'headgate' })
    : upstreamRequestHeaders(call.request.headers, null, credentials.gatewayKey);
  // A condition or a range is meant for the caller's own answer, and would leave no list.
  deleteHeaders(headers, (name) => /^(?:if-.+|range)$/.test(name));
  headers.set('accept', 'application/json');
  headers.set('accept-encoding', 'identity');
  for (const name of OVERRIDE_HEADERS) headers.delete(name);
  if (upstream.dialect === 'anthropic' && !headers.has(ANTHROPIC_VERSION)) {
    headers.set(ANTHROPIC_VERSION, ANTHROPIC_VERSION_DEFAULT);
  }
  const shape = upstream.openaiAt === null ? 'anthropic' : 'openai';
  const placed = keyToPlace(upstream, shape, injected);
  const noQuery = new URLSearchParams();
  placeCredentials(headers, noQuery, credentials, placed ?? keyOfQuery(upstream, shape, call));
  return headers;
}

/**
 * The caller's own key to place in a header, because it was in the query, which is not forwarded. null if it was not.
 */
function keyOfQuery(
  upstream: Upstream,
  shape: 'openai' | 'anthropic',
  { query, caller: { credentials } }: AuthenticatedCall,
): ReturnType<typeof keyToPlace> {
  const { providerKey } = credentials;
  const isInQuery = providerKey !== null && query.get('key') === providerKey;
  return isInQuery ? keyToPlace(upstream, shape, providerKey) : null;
}

/** Parts of a call that determine the list of a caller's own key, in addition to the key: the account that it names. */
function variantOf(headers: Headers): string {
  const others = new Headers(headers);
  dropAccounts(others, new URLSearchParams(), ACCOUNT_SELECTORS);
  others.delete(ANTHROPIC_VERSION);
  others.delete('cookie');
  return JSON.stringify([...headers].filter(([name]) => !others.has(name)));
}

/** Whether the caller's key may call a model in some way. Groups may allow some operations only. */
function mayCall(
  call: AuthenticatedCall,
  upstream: Upstream,
  upstreamKey: UpstreamKey,
  model: string,
): boolean {
  const { key } = call.caller;
  if (key === null || key.groups.length === 0) return true;
  return LIMITED_OPERATIONS.some((operation) => {
    const routed = routedCall(call, { upstream, path: null, operation, model }, upstreamKey);
    return forbiddenFor(key, placementsOf(call, routed)) === null;
  });
}

/** Minimum time between two lines about one upstream and one reason, and maximum pairs that are remembered. */
const SILENT_MS = 60_000;
const PAIRS_MAX = 500;

const lines = new BoundedMap<string, { readonly at: number; leftOut: number }>(PAIRS_MAX);

/**
 * Logs that the models of an upstream are missing in a list. The same pair is logged once a minute, and the next line
 * has the number of omitted lines (`left_out`).
 */
function logMissing(upstream: string, why: ModelListFault): void {
  const now = steadyClock.now();
  const pair = `${upstream} ${why}`;
  const last = lines.get(pair);
  if (last !== undefined && now - last.at < SILENT_MS) {
    last.leftOut += 1;
    return;
  }
  lines.set(pair, { at: now, leftOut: 0 });
  logEvent('models_missing', { upstream, why, left_out: last?.leftOut ?? 0 });
}
