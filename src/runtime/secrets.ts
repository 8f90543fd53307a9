import type { Env } from '../env.ts';
import type { Upstream } from '../contract/config/upstream.ts';

/** Finds the Worker secret of a name. Null: nobody has set it, or set it to nothing, as forms let people do. */
export function readSecret(env: object, name: string): string | null {
  const value = (env as Readonly<Record<string, unknown>>)[name];
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Lists the upstreams that wait for a secret which is not set: all their calls are refused. */
export function withoutSecret(
  env: object,
  upstreams: Iterable<Upstream>,
): { readonly id: string; readonly secret: string }[] {
  return [...upstreams].flatMap(({ id, secret }) =>
    secret === null || readSecret(env, secret) !== null ? [] : [{ id, secret }],
  );
}

/** Tells an operator how to set a secret where this Worker runs. Only `npm run serve` gives it a boot id. */
export function howToSet({ BOOT_ID: bootId }: Pick<Env, 'BOOT_ID'>, name: string): string {
  return bootId === undefined
    ? `npx wrangler secret put ${name}`
    : `${name}=… in the environment of npm run serve`;
}
