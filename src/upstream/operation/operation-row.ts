import type { Dialect } from '../../contract/dialect.ts';

/**
 * The callers of a route without a slot where the upstream sees the operator's key: everybody (`open`), everybody
 * who only reads (`readable`), whom the operator lists it for (`listed`), or nobody (`closed`).
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
  const row = { name, shape, path: ofAnyCase(path), limited: true, access: 'listed' as const };
  return only === undefined ? row : { ...row, only };
}

/** A route that takes no slot. */
export function free(
  name: string,
  shape: Dialect | null,
  path: RegExp,
  access: RouteAccess = 'listed',
): OperationRow {
  return { name, shape, path: ofAnyCase(path), limited: false, access };
}

/** Azure and many servers that people run themselves route whatever the case: it must not dodge the slot. */
function ofAnyCase(path: RegExp): RegExp {
  return new RegExp(path, 'i');
}
