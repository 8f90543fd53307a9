import type { Forwarded } from '../contract/rpc/forwarded.ts';
import type { Env } from '../env.ts';

/** Stands for all requests whose address is unknown, so they are counted together. */
const UNKNOWN_ADDRESS = 'everybody';

interface AddressHeaders {
  readonly headers: Headers;
  /** Cloudflare's request properties, or `Forwarded` from the self-hosted forwarder. */
  readonly cf?: object | undefined;
}

/**
 * Returns the address under which failed and rejected requests are counted. IPv6 addresses count by their first 64
 * bits, because a client usually owns the whole prefix.
 *
 * Cloudflare sets `cf-connecting-ip`. Callers of a self-hosted Headgate could set that header themselves. There the
 * forwarder passes the address as a property that no header can set.
 */
export function addressOf(env: Pick<Env, 'BOOT_ID'>, { headers, cf }: AddressHeaders): string {
  if (env.BOOT_ID === undefined) {
    return countedAddress(headers.get('cf-connecting-ip') ?? UNKNOWN_ADDRESS);
  }
  const { clientIp = UNKNOWN_ADDRESS }: Partial<Forwarded> = { ...cf };
  return countedAddress(clientIp);
}

/** Returns the first 64 bits of an IPv6 address. An IPv4-mapped IPv6 address is returned as IPv4. */
export function countedAddress(address: string): string {
  // A link-local address may carry the name of its interface.
  const host = `[${address.replace(/%.*$/s, '')}]`;
  if (!address.includes(':') || !URL.canParse(`http://${host}`)) return address;
  const words = v6Words(new URL(`http://${host}`).hostname.slice(1, -1));
  const isMapped = words[5] === 0xffff && words.slice(0, 5).every((word) => word === 0);
  const bytes = words.slice(6).flatMap((word) => [word >> 8, word & 0xff]);
  const prefix = words.slice(0, 4).map((word) => word.toString(16));
  return isMapped ? bytes.join('.') : `${prefix.join(':')}::/64`;
}

/** Whether an address belongs to one client. Behind a self-hosted Headgate it may be the proxy that terminates TLS. */
export function isOwnAddress(env: Pick<Env, 'BOOT_ID'>, address: string): boolean {
  return env.BOOT_ID === undefined && address !== UNKNOWN_ADDRESS;
}

/** Parses an address as `URL` writes it (lower-case hexadecimal, at most one `::`) into its eight 16-bit words. */
export function v6Words(address: string): number[] {
  const [head = '', tail] = address.split('::');
  const words = (text: string) =>
    text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16));
  if (tail === undefined) return words(head);
  const [start, end] = [words(head), words(tail)];
  return [...start, ...Array<number>(8 - start.length - end.length).fill(0), ...end];
}
