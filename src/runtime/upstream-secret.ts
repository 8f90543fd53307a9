import type { Upstream } from '../contract/config/upstream.ts';

/** The operator's key for an upstream: the Worker secret of that name. Null: nobody has set it. */
export function upstreamSecret(env: object, name: string): string | null {
  const value = (env as Readonly<Record<string, unknown>>)[name];
  return typeof value === 'string' && value !== '' ? value : null;
}

/** The upstreams that wait for a secret which is not set: all their calls are refused. */
export function withoutSecret(
  env: object,
  upstreams: Iterable<Upstream>,
): { readonly id: string; readonly secret: string }[] {
  return [...upstreams].flatMap(({ id, secret }) =>
    secret === null || upstreamSecret(env, secret) !== null ? [] : [{ id, secret }],
  );
}
