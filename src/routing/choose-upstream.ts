import type { Upstream } from '../contract/config/upstream.ts';
import { compileGlobs } from './glob.ts';

/** The API shapes of the unified routes under `/v1`. */
export type UnifiedShape = 'openai' | 'anthropic';

export interface UnifiedCall {
  /** Value of `headgate-upstream`. */
  readonly header: string | null;
  readonly model: string | null;
  readonly shape: UnifiedShape;
  /** The upstream of a member of a group that takes the model, one that serves the call. Null: there is none. */
  readonly upstreamOfMember: (
    model: string,
    isServedBy: (upstream: Upstream) => boolean,
  ) => Upstream | null;
}

export type UpstreamChoice =
  | {
      readonly kind: 'found';
      readonly upstream: Upstream;
      /** The part to be removed from the start of the body's model, slash included; '' for nothing. */
      readonly prefix: string;
    }
  /** Several upstreams' patterns match the model. Ordered by id. */
  | { readonly kind: 'ambiguous'; readonly upstreams: readonly Upstream[] }
  /** All that was looked at, in order, in words for the caller. */
  | { readonly kind: 'unknown'; readonly tried: readonly string[] };

/**
 * Chooses the upstream of a call to `/v1/*`: by the header; by the model's first path segment, if
 * that is an upstream's id; by the upstreams' model patterns; by the groups with members that name the model, where no
 * pattern does or several do; by default. Only patterns and members look at the shape: who names an upstream that lacks it is told so (`unifiedPath` is null), not sent elsewhere.
 */
export function chooseUpstream(
  call: UnifiedCall,
  upstreams: ReadonlyMap<string, Upstream>,
  defaultUpstream: string | null,
): UpstreamChoice {
  const { header, model, shape, upstreamOfMember } = call;
  if (header !== null) {
    const named = upstreams.get(header.trim().toLowerCase());
    // A header that names nothing is a mistake; another upstream would be a surprise.
    if (named !== undefined) return { kind: 'found', upstream: named, prefix: '' };
    return { kind: 'unknown', tried: [`the header headgate-upstream: ${quote(header)}`] };
  }
  const tried = ['the header headgate-upstream (not sent)'];
  if (model === null) {
    tried.push('the model (the call names none)');
  } else {
    const slash = model.indexOf('/');
    const named = slash > 0 ? upstreams.get(model.slice(0, slash).toLowerCase()) : undefined;
    if (named !== undefined) {
      return { kind: 'found', upstream: named, prefix: model.slice(0, slash + 1) };
    }
    if (slash > 0) tried.push(`an upstream with the id ${quote(model.slice(0, slash))}`);

    const hasRoutes = (upstream: Upstream): boolean => routesAt(upstream, shape) !== null;
    const served = [...upstreams.values()].filter(
      (upstream) => hasRoutes(upstream) && servesModel(upstream, model),
    );
    const [only, second] = served;
    const ofMember = served.length === 1 ? null : upstreamOfMember(model, hasRoutes);
    if (ofMember !== null) return { kind: 'found', upstream: ofMember, prefix: '' };
    if (second !== undefined) {
      const byId = served.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      return { kind: 'ambiguous', upstreams: byId };
    }
    if (only !== undefined) return { kind: 'found', upstream: only, prefix: '' };
    tried.push(`the upstreams' model patterns for ${quote(model)}`);
  }
  const fallback = defaultUpstream === null ? undefined : upstreams.get(defaultUpstream);
  if (fallback !== undefined) return { kind: 'found', upstream: fallback, prefix: '' };
  tried.push('default_upstream (not configured)');
  return { kind: 'unknown', tried };
}

/**
 * Finds where a unified route lies behind the upstream's base URL: `/v1/chat/completions` becomes
 * `openaiAt` + `/chat/completions`. Null: the upstream has no routes of that shape. Takes a path
 * without its query.
 */
export function unifiedPath(upstream: Upstream, shape: UnifiedShape, path: string): string | null {
  const at = routesAt(upstream, shape);
  return at === null ? null : at + path.replace(/^\/v1(?=\/|$)/, '');
}

function routesAt(upstream: Upstream, shape: UnifiedShape): string | null {
  return shape === 'openai' ? upstream.openaiAt : upstream.anthropicAt;
}

/** Path under the upstream's base URL where its list of models is, without `/models`. Null: it has none. */
export function modelsAt({ openaiAt, anthropicAt }: Upstream): string | null {
  return openaiAt ?? anthropicAt;
}

/** Upstreams never change, so that each one's patterns are compiled once, at the first question. */
const matchers = new WeakMap<Upstream, (name: string) => boolean>();

/** Tells whether an upstream's patterns say that it has a model. */
export function servesModel(upstream: Upstream, model: string): boolean {
  let matches = matchers.get(upstream);
  if (matches === undefined) {
    matches = compileGlobs(upstream.models);
    matchers.set(upstream, matches);
  }
  return matches(model);
}

/** Quotes what a caller sent, short enough to be sent back. */
function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}
