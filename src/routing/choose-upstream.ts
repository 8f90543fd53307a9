import { quoted } from '../core/words/quoted.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { compileGlobs } from './glob.ts';

/** The API shapes of the unified routes under `/v1`. */
export type UnifiedShape = 'openai' | 'anthropic';

export interface UnifiedCall {
  /** Value of `headgate-upstream`. */
  readonly header: string | null;
  readonly model: string | null;
  readonly shape: UnifiedShape;
  /** Returns the upstream of the first member that serves the call, in a group with members that matches the model. */
  readonly upstreamOfMember: (
    model: string,
    isServedBy: (upstream: Upstream) => boolean,
  ) => Upstream | null;
}

export type UpstreamChoice =
  | {
      readonly kind: 'found';
      readonly upstream: Upstream;
      /** The part to remove from the start of the body's model, slash included. Empty for nothing. */
      readonly prefix: string;
    }
  /** Several upstreams' patterns match the model. Ordered by id. */
  | { readonly kind: 'ambiguous'; readonly upstreams: readonly Upstream[] }
  /** The places that were checked, in order, in words for the client. */
  | { readonly kind: 'unknown'; readonly tried: readonly string[] };

/**
 * Chooses the upstream of a call to `/v1/*`, by the first of these that applies:
 *
 * 1. the header `headgate-upstream`
 * 2. the first path segment of the model, if it is the id of an upstream
 * 3. the only upstream whose model patterns match
 * 4. a group with members that matches the model
 * 5. the default upstream
 *
 * Only model patterns and members require the API shape of the call. A call to a named upstream without that shape is
 * rejected later (`unifiedPath` returns null) and is not sent elsewhere.
 */
export function chooseUpstream(
  call: UnifiedCall,
  upstreams: ReadonlyMap<string, Upstream>,
  defaultUpstream: string | null,
): UpstreamChoice {
  const { header, model, shape, upstreamOfMember } = call;
  if (header !== null) {
    const named = upstreams.get(header.trim().toLowerCase());
    // An unknown upstream in the header is a mistake, and a silent choice of another one would be a surprise.
    if (named !== undefined) return { kind: 'found', upstream: named, prefix: '' };
    return { kind: 'unknown', tried: [`the header \`headgate-upstream\`: ${quoted(header)}`] };
  }
  const tried = ['the header `headgate-upstream` (not sent)'];
  if (model === null) {
    tried.push('the model (the request has none)');
  } else {
    const slash = model.indexOf('/');
    const named = slash > 0 ? upstreams.get(model.slice(0, slash).toLowerCase()) : undefined;
    if (named !== undefined) {
      return { kind: 'found', upstream: named, prefix: model.slice(0, slash + 1) };
    }
    if (slash > 0) tried.push(`an upstream with the id ${quoted(model.slice(0, slash))}`);

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
    tried.push(`the upstreams' model patterns for ${quoted(model)}`);
  }
  const fallback = defaultUpstream === null ? undefined : upstreams.get(defaultUpstream);
  if (fallback !== undefined) return { kind: 'found', upstream: fallback, prefix: '' };
  tried.push('`default_upstream` (not configured)');
  return { kind: 'unknown', tried };
}

/**
 * Returns the path of a unified route below the upstream's base URL: `/v1/chat/completions` becomes `openaiAt` +
 * `/chat/completions`. null if the upstream has no routes of that shape.
 *
 * @param path without the query
 */
export function unifiedPath(upstream: Upstream, shape: UnifiedShape, path: string): string | null {
  const at = routesAt(upstream, shape);
  return at === null ? null : at + path.replace(/^\/v1(?=\/|$)/, '');
}

function routesAt(upstream: Upstream, shape: UnifiedShape): string | null {
  return shape === 'openai' ? upstream.openaiAt : upstream.anthropicAt;
}

/** Path of the list of models below the upstream's base URL, without `/models`. null if there is none. */
export function modelsAt({ openaiAt, anthropicAt }: Upstream): string | null {
  return openaiAt ?? anthropicAt;
}

/** Upstreams never change, so the patterns of each are compiled once, when they are first needed. */
const matchers = new WeakMap<Upstream, (name: string) => boolean>();

export function servesModel(upstream: Upstream, model: string): boolean {
  let matches = matchers.get(upstream);
  if (matches === undefined) {
    matches = compileGlobs(upstream.models);
    matchers.set(upstream, matches);
  }
  return matches(model);
}
