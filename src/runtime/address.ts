import type { Forwarded } from '../contract/rpc/forwarded.ts';
import type { Env } from '../env.ts';

/** The address of everybody who comes from one that is not known. */
const EVERYBODY = 'everybody';

interface AddressHeaders {
  readonly headers: Headers;
  /** Unlike Cloudflare's, that of the forwarder is `Forwarded`. */
  readonly cf?: object | undefined;
}

/**
 * Says where a request comes from, as it counts for whoever misbehaves: an address of IPv6 by its first 64
 * bits, since whoever has one address has all that begin with them. Cloudflare sets `cf-connecting-ip`, which
 * callers could write themselves where Headgate hosts itself: there the forwarder says it, as a property that
 * no header of theirs can set.
 */
export function addressOf(env: Pick<Env, 'BOOT_ID'>, { headers, cf }: AddressHeaders): string {
  if (env.BOOT_ID === undefined) {
    return countedAddress(headers.get('cf-connecting-ip') ?? EVERYBODY);
  }
  const { clientIp = EVERYBODY }: Partial<Forwarded> = { ...cf };
  return countedAddress(clientIp);
}

/** The form in which an address is counted: the first 64 bits of IPv6; an IPv4-mapped IPv6 address as IPv4. */
export function countedAddress(address: string): string {
  // A link-local one may come with the name of its interface.
  const host = `[${address.replace(/%.*$/s, '')}]`;
  if (!address.includes(':') || !URL.canParse(`http://${host}`)) return address;
  const words = v6Words(new URL(`http://${host}`).hostname.slice(1, -1));
  const isMapped = words[5] === 0xffff && words.slice(0, 5).every((word) => word === 0);
  const bytes = words.slice(6).flatMap((word) => [word >> 8, word & 0xff]);
  const prefix = words.slice(0, 4).map((word) => word.toString(16));
  return isMapped ? bytes.join('.') : `${prefix.join(':')}::/64`;
}

/** Tells whether nobody else comes from there. Where Headgate hosts itself it may be the proxy that does TLS. */
export function isOwnAddress(env: Pick<Env, 'BOOT_ID'>, address: string): boolean {
  return env.BOOT_ID === undefined && address !== EVERYBODY;
}

/** Reads the eight words of an address as `URL` writes it: lower-case hexadecimal, one `::` at most. */
export function v6Words(address: string): number[] {
  const [head = '', tail] = address.split('::');
  const words = (text: string) =>
    text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16));
  if (tail === undefined) return words(head);
  const [start, end] = [words(head), words(tail)];
  return [...start, ...Array<number>(8 - start.length - end.length).fill(0), ...end];
}
