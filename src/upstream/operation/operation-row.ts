import type { Dialect } from '../../contract/dialect.ts';
import { READING_METHODS } from '../../contract/methods.ts';

/**
 * Callers that may use a route without a slot where the upstream sees the operator's key: all, by the methods that
 * the row names (`open`), all that only read (`readable`), those that the operator lists it for (`listed`), or none
 * (`closed`).
 */
export type RouteAccess = 'open' | 'readable' | 'listed' | 'closed';

/** One route of some provider. */
export interface OperationRow {
  readonly name: string;
  /** The shape in which the call and its errors are spoken. Null: the upstream's own. */
  readonly shape: Dialect | null;
  /** The group `model`, where there is one, captures the model, still URL-encoded. */
  readonly path: RegExp;
  /** Whether a POST takes a slot. */
  readonly limited: boolean;
  /** Of what takes no slot. */
  readonly access: RouteAccess;
  /** Methods for which an `open` or `readable` route is open. */
  readonly openBy: readonly string[];
  /** The row holds for upstreams of this dialect only. */
  readonly only?: Dialect;
}

/** A route whose POST generates. Whatever else may be done there is about what was generated before. */
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

/** A route that takes no slot, and is open to all callers for those methods. */
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

/** Azure and many servers that people run themselves route whatever the case: it must not dodge the slot. */
function ofAnyCase(path: RegExp): RegExp {
  return new RegExp(path, 'i');
}
