import type { ErrorReply } from '../../contract/reasons.ts';
import type { Dialect } from '../../contract/http.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import {
  chooseUpstream,
  modelsAt,
  unifiedPath,
  type UnifiedShape,
} from '../../routing/upstreams.ts';
import { isUpstreamAllowed } from '../../routing/key-access.ts';
import { classify } from '../../upstream/operation/operation.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import { rejected, type Rejected } from '../results/result.ts';
import { nearestUpstream, notUnified } from './base-url.ts';
import { splitPath, type AuthenticatedCall } from './call.ts';
import { modelInPath, modelsRequest } from './operation-of.ts';

const NO_HEADERS = new Headers();

export interface ChosenPath {
  readonly kind: 'chosen';
  readonly upstream: Upstream;
  /** Relative to the upstream's base URL. */
  readonly path: string;
  /** Prefix of the model that names the upstream. */
  readonly prefix: string;
}

/** Whether a path is a route below `/v1`. `/v1/` alone is a base URL. */
export function isUnified({ pathname }: URL): boolean {
  return pathname.startsWith('/v1/') && pathname.length > '/v1/'.length;
}

export function unifiedShape(path: string): UnifiedShape {
  return /^\/v1\/messages(\/|$)/.test(path) ? 'anthropic' : 'openai';
}

export function errorShape(
  { method, headers = NO_HEADERS }: Pick<Request, 'method'> & Partial<Pick<Request, 'headers'>>,
  url: URL,
  table: RoutingTable | null,
): Dialect {
  const models = modelsRequest({ method, headers }, url, table);
  if (models !== null) return models.dialect;
  const { pathname, searchParams } = url;
  const { id, rest } = splitPath(pathname);
  const upstream = isUnified(url) ? undefined : table?.upstreams.get(id);
  // Below /v1, and if no upstream is named, the whole path determines the client's dialect.
  if (upstream === undefined) return classify(method, pathname, searchParams, 'openai').shape;
  return classify(method, rest, searchParams, upstream.dialect).shape;
}

export function choosePath(
  call: Pick<AuthenticatedCall, 'request' | 'table' | 'url' | 'headers' | 'caller'>,
  shape: UnifiedShape,
  model: string | null,
): ChosenPath | Rejected {
  const { table, url, headers, caller } = call;
  const { keyIds } = caller;
  const upstreamOfMember: PathRequest['upstreamOfMember'] = (named, isServedBy) =>
    table.routes.upstreamOfMember({ model: named, keyIds, isServedBy });
  const asked = { header: headers.upstream, model, shape, upstreamOfMember };
  const choice = choose(call, asked);
  if (choice.kind === 'rejected') return choice;
  const { upstream, prefix } = choice;
  const named = modelInPath(url.pathname);
  const path =
    named === null
      ? unifiedPath(upstream, shape, url.pathname)
      : modelPath(upstream, named, prefix);
  if (path === null) return rejected(noSuchShape(upstream, shape));
  return { kind: 'chosen', upstream, path, prefix };
}

/** The path of a model at its upstream. `named` is its name in the path of the call, as received. */
function modelPath(upstream: Upstream, named: string, prefix: string): string | null {
  const at = modelsAt(upstream);
  // The slash behind the prefix may be escaped.
  const escaped = prefix.replace('/', '(?:/|%2f)');
  const own = prefix === '' ? named : named.replace(new RegExp(`^${escaped}`, 'i'), '');
  return at === null ? null : `${at}/models/${own}`;
}

type PathRequest = Parameters<typeof chooseUpstream>[0];

function choose(of: Parameters<typeof choosePath>[0], call: PathRequest) {
  const { upstreams, snapshot } = of.table;
  const choice = chooseUpstream(call, upstreams, snapshot.config.default_upstream);
  switch (choice.kind) {
    case 'found':
      return choice;
    case 'ambiguous':
      return rejected(ambiguous(choice.upstreams, of));
    case 'unknown': {
      const help = notUnified(of) || nearUpstream(call, of);
      return rejected({
        reason: call.model === null || call.header !== null ? 'upstream_unknown' : 'model_unknown',
        message: `No upstream was found for this call. Tried: ${choice.tried.join('; ')}.${help}`,
      });
    }
  }
}

/** The error for a model that several upstreams serve. It names those that the caller may use. */
function ambiguous(
  upstreams: readonly Upstream[],
  { caller, table: { routes } }: Parameters<typeof choosePath>[0],
): ErrorReply {
  const allowed = upstreams.filter((each) => isUpstreamAllowed(caller.key, each, routes));
  const ids = allowed.map(({ id }) => id);
  const which = ids.length === 0 ? '' : `: ${ids.map((id) => `\`${id}\``).join(', ')}`;
  const message = `Several upstreams serve this model${which}. Name one in the \`headgate-upstream\` header, or as a prefix of the model, as in \`${ids[0] ?? 'upstream'}/<model>\`.`;
  return { reason: 'model_ambiguous', message };
}

/** The upstream that a header or the prefix of a model most likely means. */
function nearUpstream(
  { header, model }: PathRequest,
  of: Parameters<typeof choosePath>[0],
): string {
  const [prefix = '', ...more] = model?.split('/') ?? [];
  const named = header ?? (more.length > 0 ? prefix : null);
  const nearest = named === null ? null : nearestUpstream(named, of);
  return nearest === null ? '' : ` Did you mean the upstream \`${nearest}\`?`;
}

function noSuchShape(upstream: Upstream, shape: Dialect): ErrorReply {
  const message = `Upstream \`${upstream.id}\` has no routes of the \`${shape}\` dialect, and Headgate does not translate between dialects. Use a client for its dialect, or another upstream.`;
  return { reason: 'upstream_unknown', message };
}
