import { upstreamRequestHeaders } from '../upstream/request-headers.ts';
import { dropCredentials, keyPlaceFor, placeCredentials } from '../upstream/credentials.ts';
import type { Upstream } from '../contract/upstream.ts';
import { unifiedPath } from '../routing/choose-upstream.ts';
import type { RoutedCall } from '../routing/placement.ts';
import { LIMITED_OPERATIONS } from '../upstream/operations-table.ts';
import { within } from '../upstream/within.ts';
import { keyFor, type Caller } from './authenticate.ts';
import type { ProxyCall } from './call.ts';
import { fetcherOf } from './fetcher.ts';
import { forbiddenFor, forbiddenUpstream } from './key-access.ts';

/** An upstream that takes longer is left out of the list. */
const LIST_TIMEOUT_MS = 5_000;

interface Model {
  readonly id: string;
}

/**
 * The models of the upstreams that this caller may use without naming one: those whose key the operator
 * stored, behind a gateway key, and the default upstream. A caller's own provider key is shown to no
 * upstream but the default one: it belongs to a single provider, and nobody else may see it. A gateway key
 * that lists groups sees the upstreams and the models that it may call by them.
 */
export async function listModels(call: ProxyCall, caller: Caller): Promise<Response> {
  const { upstreams, snapshot, routes } = call.table;
  const { key } = caller;
  const asked = [...upstreams.values()].filter((upstream) => {
    const { id, secret, openaiAt } = upstream;
    if (openaiAt === null) return false;
    if (key !== null && forbiddenUpstream(key, upstream, routes) !== null) return false;
    if (id === snapshot.config.default_upstream) return true;
    return (
      secret !== null && caller.gatewayKeyId !== null && caller.credentials.providerKey === null
    );
  });
  const lists = await Promise.allSettled(
    asked.map((upstream) => within(LIST_TIMEOUT_MS, modelsOf(upstream, call, caller))),
  );
  const data = lists.flatMap((list) => (list.status === 'fulfilled' ? list.value : []));
  return Response.json({ object: 'list', data });
}

async function modelsOf(upstream: Upstream, call: ProxyCall, caller: Caller): Promise<Model[]> {
  const key = await keyFor(upstream, caller, call.table, call.env);
  const path = unifiedPath(upstream, 'openai', '/v1/models');
  if ('reason' in key || path === null) return [];
  const headers = upstreamRequestHeaders(call.request.headers);
  headers.set('accept-encoding', 'identity');
  const place = keyPlaceFor(upstream, 'openai');
  const injected = key.injected === null ? null : { place, key: key.injected };
  const noQuery = new URLSearchParams();
  // With the operator's key, the list is asked of upstreams that the caller did not name.
  if (injected !== null) dropCredentials(headers, noQuery);
  placeCredentials(headers, noQuery, caller.credentials, injected);
  // A redirect would take the key to wherever it leads, so it counts as no list.
  const answer = await fetcherOf(upstream.via, call.env).fetch(`${upstream.baseUrl}${path}`, {
    headers,
    redirect: 'manual',
    signal: AbortSignal.timeout(LIST_TIMEOUT_MS),
  });
  if (!answer.ok) {
    await answer.body?.cancel();
    return [];
  }
  const list: { data?: Model[] } = await answer.json();
  return (list.data ?? [])
    .filter(({ id }) => mayCall(call, caller, { upstream, keyFingerprint: key.fingerprint }, id))
    .map((model) => ({ ...model, id: `${upstream.id}/${model.id}` }));
}

/** Whether the caller's key lets it call a model in some way: groups may be for some operations only. */
function mayCall(
  { table, request }: ProxyCall,
  caller: Caller,
  at: Pick<RoutedCall, 'upstream' | 'keyFingerprint'>,
  model: string,
): boolean {
  const { key, keyIds, id } = caller;
  if (key === null || key.groups.length === 0) return true;
  const header = (name: string) => request.headers.get(name);
  const routed = { ...at, model, keyIds, caller: id, header };
  return LIMITED_OPERATIONS.some(
    (operation) => forbiddenFor(key, table.routes.place({ ...routed, operation })) === null,
  );
}
