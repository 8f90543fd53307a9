import type { Upstream } from '../contract/config/upstream.ts';

/** Paths that name the model: Gemini's and Bedrock's, Azure's deployments and what is like them. */
const MODEL_IN_PATH = /(?<=\/(?:models|model|deployments|engines|serving-endpoints)\/)[^/:]+/;

/**
 * Finds where a path of one upstream lies at another that speaks the same dialect, under another model name if
 * one is given. Null: the other one has no such routes.
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

/** Tells whether calls to one upstream, by a path there or any (null), have a route at the other. */
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
  // Of two that fit, the longer one says more.
  const fitting = shapes
    .filter(([at]) => at !== null && path.startsWith(`${at}/`))
    .toSorted(([a], [b]) => (b?.length ?? 0) - (a?.length ?? 0));
  const isOwnDialect = from.dialect === to.dialect;
  const [mapping] = fitting;
  if (mapping === undefined) return isOwnDialect ? path : null;
  const [at, there] = mapping;
  if (there !== null) return there + path.slice(at?.length ?? 0);
  return null;
}
