import type { Upstream } from '../contract/config/upstream.ts';

/** Model names in paths, as of Gemini, Bedrock and deployments of Azure. */
const MODEL_IN_PATH = /(?<=\/(?:models|model|deployments|engines|serving-endpoints)\/)[^/:]+/;

/**
 * Returns the path at another upstream with the same dialect that corresponds to a path of one upstream, with another
 * model name if one is given. null if the other upstream has no such routes.
 */
export function siblingPath(
  from: Upstream,
  to: Upstream,
  path: string,
  model: string | null,
): string | null {
  const moved = movedPath(from, to, path);
  if (moved === null || model === null) return moved;
  return moved.replace(MODEL_IN_PATH, () => encodeURIComponent(model));
}

/** Whether calls to one upstream, by some path or any (null), have a route at the other. */
export function hasSibling(from: Upstream, to: Upstream, path: string | null): boolean {
  if (path !== null) return movedPath(from, to, path) !== null;
  const bothOpenai = from.openaiAt !== null && to.openaiAt !== null;
  const bothAnthropic = from.anthropicAt !== null && to.anthropicAt !== null;
  return from.dialect === to.dialect || bothOpenai || bothAnthropic;
}

function movedPath(from: Upstream, to: Upstream, path: string): string | null {
  const shapes = [
    [from.openaiAt, to.openaiAt],
    [from.anthropicAt, to.anthropicAt],
  ] as const;
  // If both prefixes match, the longer one is more specific.
  const matching = shapes
    .filter(([at]) => at !== null && path.startsWith(`${at}/`))
    .toSorted(([a], [b]) => (b?.length ?? 0) - (a?.length ?? 0));
  const isOwnDialect = from.dialect === to.dialect;
  const [mapping] = matching;
  if (mapping === undefined) return isOwnDialect ? path : null;
  const [at, there] = mapping;
  if (there !== null) return there + path.slice(at?.length ?? 0);
  return null;
}
