import {
  keepHeaders,
  mayGoElsewhere,
  upstreamRequestHeaders,
} from '../upstream/transfer/request-headers.ts';
import { textWithin } from '../upstream/body/bounded-body.ts';
import {
  CREDENTIAL_HEADERS,
  dropAccounts,
  dropCredentials,
  keyToPlace,
  placeCredentials,
} from '../upstream/transfer/credentials.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { ACCOUNT_SELECTORS } from '../providers/accounts.ts';
import { unifiedPath } from '../routing/choose-upstream.ts';
import { configuredModels } from '../routing/configured-models.ts';
import { OVERRIDE_HEADERS } from '../upstream/operation/method-override.ts';
import { LIMITED_OPERATIONS } from '../upstream/operation/operations-table.ts';
import { within } from '../runtime/within.ts';
import { foreignPage } from './foreign-page.ts';
import type { UpstreamKey } from './identity/authenticate.ts';
import type { KnownCall } from './call.ts';
import { modelLists } from './isolate.ts';
import type { Model, ModelList } from './model-lists.ts';
import { forbiddenFor, forbiddenUpstream } from '../routing/key-access.ts';
import { goesByMembers } from './members/goes-by-members.ts';
import { keyWithoutSlot, secretOfMember } from './members/key-without-slot.ts';
import { placementsOf, routedCall } from './plan.ts';
import { fetcherOf } from './target.ts';

/** How long an upstream may take to its list, and how long that may be, before it is left out. */
const LIST_TIMEOUT_MS = 5_000;
const LIST_BYTES_MAX = 4 * 1_024 * 1_024;

/** Headers that the list depends on, besides its address. */
const VARY = [
  ...CREDENTIAL_HEADERS,
  'headgate-upstream',
  'openai-organization',
  'openai-project',
].join(', ');

/** Without it Anthropic lists nothing, and clients of the other shape do not send it. */
const ANTHROPIC_VERSION = 'anthropic-version';
const ANTHROPIC_VERSION_DEFAULT = '2023-06-01';

/**
 * Lists the models of the upstreams that this caller may use without naming one: those whose key the operator
 * stored, behind a gateway key, and the default upstream. A caller's own provider key is shown to no
 * upstream but the default one: it belongs to a single provider, and nobody else may see it. Of the
 * others, and of those that give no list, there are the models that the configuration names. A gateway key
 * that lists groups sees the upstreams and the models that it may call by them.
 */
export async function listModels(call: KnownCall): Promise<Response> {
  const { caller } = call;
  const { upstreams, snapshot, routes } = call.table;
  const { key } = caller;
  const open = [...upstreams.values()].filter(
    (upstream) => key === null || forbiddenUpstream(key, upstream, routes) === null,
  );
  const asked = open.filter((upstream) => {
    const { id, secret, openaiAt } = upstream;
    if (openaiAt === null) return false;
    if (id === snapshot.config.default_upstream) return true;
    return (
      goesByMembers(caller, upstream) && (secret ?? secretOfMember(upstream, null, call)) !== null
    );
  });
  const lists = await Promise.allSettled(
    asked.map((upstream) => within(LIST_TIMEOUT_MS, modelsOf(upstream, call))),
  );
  const told = new Map(
    asked.flatMap((upstream, index) => {
      const list = lists[index];
      const models = list?.status === 'fulfilled' ? list.value : null;
      return models === null ? [] : [[upstream, models] as const];
    }),
  );
  const untold = new Set(open.filter((upstream) => !told.has(upstream)));
  const data = [...[...told.values()].flat(), ...(await namedModels(untold, call))];
  const headers = { 'cache-control': 'private', vary: VARY };
  return Response.json({ object: 'list', data }, { headers });
}

/** Lists what the configuration names at these upstreams, as far as the caller has a key for them. */
async function namedModels(at: ReadonlySet<Upstream>, call: KnownCall): Promise<Model[]> {
  const { table } = call;
  const named = configuredModels(table.snapshot.config, table.upstreams);
  const models: Model[] = [];
  for (const { upstream, model } of named) {
    if (!at.has(upstream) || (upstream.openaiAt ?? upstream.anthropicAt) === null) continue;
    const found = await keyWithoutSlot(upstream, model, call);
    if (found.kind === 'rejected' || !mayCall(call, upstream, found.key, model)) continue;
    const { id } = upstream;
    const said = { object: 'model', created: 0, owned_by: id };
    models.push({ id: `${id}/${model}`, ...said });
  }
  return models;
}

/** Lists the models that an upstream returned within the last minute; null: it returns no list. */
async function modelsOf(upstream: Upstream, call: KnownCall): Promise<Model[] | null> {
  const { caller } = call;
  const found = await keyWithoutSlot(upstream, null, call);
  const path = unifiedPath(upstream, 'openai', '/v1/models');
  if (found.kind === 'rejected' || path === null) return null;
  const { key } = found;
  if (foreignPage(call, upstream, key.injected) !== null) return null;
  const { gatewayKey } = caller.credentials;
  const headers = upstreamRequestHeaders(call.request.headers, null, gatewayKey);
  headers.set('accept-encoding', 'identity');
  for (const name of OVERRIDE_HEADERS) headers.delete(name);
  if (upstream.dialect === 'anthropic' && !headers.has(ANTHROPIC_VERSION)) {
    headers.set(ANTHROPIC_VERSION, ANTHROPIC_VERSION_DEFAULT);
  }
  const injected = keyToPlace(upstream, 'openai', key.injected);
  const noQuery = new URLSearchParams();
  // With the operator's key, the list is asked of upstreams that the caller did not name.
  if (injected !== null) {
    dropAccounts(headers, noQuery, ACCOUNT_SELECTORS);
    keepHeaders(headers, mayGoElsewhere);
    dropCredentials(headers, noQuery);
  }
  placeCredentials(headers, noQuery, caller.credentials, injected);
  const url = `${upstream.baseUrl}${path}`;
  const whose = `${upstream.id} ${url} ${key.fingerprint}`;
  const variant = injected === null ? variantOf(headers) : '';
  const ask = () => readList(fetcherOf(upstream.via, call.env), url, headers);
  const models = await modelLists.get(whose, variant, ask, LIST_TIMEOUT_MS);
  if (models === null) return null;
  return models
    .filter(({ id }) => mayCall(call, upstream, key, id))
    .map((model) => ({ ...model, id: `${upstream.id}/${model.id}` }));
}

/** Parts of a call that the list of a caller's own key depends on, in addition to the key: the account that it names. */
function variantOf(headers: Headers): string {
  const others = new Headers(headers);
  dropAccounts(others, new URLSearchParams(), ACCOUNT_SELECTORS);
  others.delete(ANTHROPIC_VERSION);
  others.delete('cookie');
  return JSON.stringify([...headers].filter(([name]) => !others.has(name)));
}

/** Reads a list from an upstream; null: it returns none, or the list is too long. */
async function readList(
  fetcher: ReturnType<typeof fetcherOf>,
  url: string,
  headers: Headers,
): Promise<ModelList | null> {
  const signal = AbortSignal.timeout(LIST_TIMEOUT_MS);
  // A redirect would take the key to wherever it leads, so it counts as no list.
  const answer = await fetcher.fetch(url, { headers, redirect: 'manual', signal });
  if (!answer.ok) {
    await answer.body?.cancel();
    return null;
  }
  const text = await textWithin(answer, LIST_BYTES_MAX);
  const list = text === null ? null : (JSON.parse(text) as { readonly data?: unknown });
  if (text === null || !Array.isArray(list?.data)) return null;
  return { models: list.data.filter(isModel), chars: text.length };
}

function isModel(one: unknown): one is Model {
  return typeof (one as Partial<Model> | null)?.id === 'string';
}

/** Tells whether the caller's key lets it call a model in some way: groups may be for some operations only. */
function mayCall(
  call: KnownCall,
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
