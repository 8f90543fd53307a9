import { v6Words } from './address.ts';

/** Suffixes of names that only a private network resolves (RFC 6761, 6762, 8375, and common custom ones). */
const PRIVATE_NAMES = /(^|\.)(localhost|local|internal|intranet|lan|home|corp|private|home\.arpa)$/;

const V4 = /^\d+\.\d+\.\d+\.\d+$/;

/** First address and prefix length of every IPv4 range that is not on the public network. */
const PRIVATE_V4: readonly (readonly [address: string, bits: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
];

/**
 * Whether a URL's host is private, loopback, link-local, or a name that only a private network resolves. Expects
 * `hostname` of a parsed `URL`, which has already converted decimal, octal and hexadecimal IPv4 addresses to dotted
 * form. It does not resolve names.
 */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, '');
  if (host.startsWith('[')) return isPrivateV6(host.slice(1, -1));
  if (V4.test(host)) return isPrivateV4(v4Number(host));
  return !host.includes('.') || PRIVATE_NAMES.test(host);
}

/** Whether a URL's host is an IP address. Expects `hostname` of a parsed `URL`. */
export function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || V4.test(hostname.replace(/\.$/, ''));
}

function v4Number(dotted: string): number {
  return dotted.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function isPrivateV4(address: number): boolean {
  return PRIVATE_V4.some(([first, bits]) => {
    const size = 2 ** (32 - bits);
    return Math.floor(address / size) === Math.floor(v4Number(first) / size);
  });
}

function isPrivateV6(address: string): boolean {
  const words = v6Words(address);
  const [first = 0, second = 0, third = 0] = words;
  const embedded = (high: number, low: number) =>
    isPrivateV4((words[high] ?? 0) * 65_536 + (words[low] ?? 0));
  if ((first & 0xfe00) === 0xfc00) return true; // unique local, fc00::/7
  if (first >= 0xfe80) return true; // link-local, site-local and multicast, fe80::/9 and ff00::/8
  if (first === 0x2001 && second === 0) return true; // Teredo, 2001::/32: a host behind some other address
  if (first === 0x100 && words.slice(1, 4).every((word) => word === 0)) return true; // discard, 100::/64
  if (first === 0x2002) return embedded(1, 2); // 6to4
  if (first === 0x64 && second === 0xff9b) return third === 1 || embedded(6, 7); // NAT64
  // `::`, `::1`, and IPv4 in its mapped, translated and compatible forms.
  if (words.slice(0, 4).every((word) => word === 0)) return embedded(6, 7);
  return false;
}
