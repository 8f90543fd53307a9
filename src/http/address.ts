import type { Env } from '../contract/env.ts';

/** Stands for whoever comes from an address that is not known. */
const EVERYBODY = 'everybody';

interface Asked {
  readonly headers: Headers;
  /** Unlike Cloudflare's, that of the forwarder has `clientIp`. */
  readonly cf?: object | undefined;
}

/**
 * Where a request comes from. Cloudflare sets `cf-connecting-ip`, which callers could write themselves where
 * Headgate hosts itself: there the forwarder says it, as a property that no header of theirs can set.
 */
export function addressOf(env: Pick<Env, 'BOOT_ID'>, { headers, cf }: Asked): string {
  if (env.BOOT_ID === undefined) return headers.get('cf-connecting-ip') ?? EVERYBODY;
  const { clientIp }: { clientIp?: unknown } = { ...cf };
  return typeof clientIp === 'string' ? clientIp : EVERYBODY;
}

/** Whether nobody else comes from there. Where Headgate hosts itself it may be the proxy that does TLS. */
export function isOwnAddress(env: Pick<Env, 'BOOT_ID'>, address: string): boolean {
  return env.BOOT_ID === undefined && address !== EVERYBODY;
}
