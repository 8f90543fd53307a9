import type { Dialect } from '../../contract/dialect.ts';
import { READING_METHODS } from '../../contract/methods.ts';

/**
 * Which callers may use a route without a slot if the upstream sees the operator's key. `open`: all, with the methods
 * of the row. `readable`: all that only read. `listed`: those for which the operator lists it. `closed`: none.
 */
export type RouteAccess = 'open' | 'readable' | 'listed' | 'closed';

export interface OperationRow {
  readonly name: string;
  /** The dialect of the call and its errors. null for the dialect of the upstream. */
  readonly shape: Dialect | null;
  /** The named group `model`, if there is one, captures the model, still URL-encoded. */
  readonly path: RegExp;
  /** Whether a POST takes a slot. */
  readonly limited: boolean;
  /** Access for calls that take no slot. */
  readonly access: RouteAccess;
  /** Methods for which an `open` or `readable` route is open. */
  readonly openBy: readonly string[];
  /** Restricts the row to upstreams of this dialect. */
  readonly only?: Dialect;
}

/** A route whose POST generates. Other methods there are about what was generated before. */
export function slot(
  name: string,
  shape: Dialect | null,
  path: RegExp,
  only?: Dialect,
): OperationRow {
  const base = { name, shape, path: ofAnyCase(path), limited: true };
  const row = { ...base, access: 'listed' as const, openBy: [] };
  return only === undefined ? row : { ...row, only };
}

/** A route that takes no slot, and is open to all callers with these methods. */
export function open(
  name: string,
  shape: Dialect | null,
  path: RegExp,
  ...openBy: readonly string[]
): OperationRow {
  return { name, shape, path: ofAnyCase(path), limited: false, access: 'open', openBy };
}

/** A route that takes no slot. */
export function free(
  name: string,
  shape: Dialect | null,
  path: RegExp,
  access: Exclude<RouteAccess, 'open'> = 'listed',
): OperationRow {
  const openBy = access === 'readable' ? READING_METHODS : [];
  return { name, shape, path: ofAnyCase(path), limited: false, access, openBy };
}

/** Azure and many self-hosted servers ignore the case of routes, so a different case must not bypass the slot. */
function ofAnyCase(path: RegExp): RegExp {
  return new RegExp(path, 'i');
}
