import { lookup } from 'node:dns/promises';
import { isIPv6 } from 'node:net';

/** Host names of every machine for itself. */
const OF_THIS_MACHINE = ['localhost', '127.0.0.1', '[::1]'];

const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/;

/**
 * Returns the host names, separated by commas, that Headgate serves if it listens on a loopback address. They block DNS
 * rebinding, in which a web page points its own host name to this machine and sends that name. null means all hosts,
 * because other machines reach the address by unknown names.
 */
export async function allowedHosts(
  address: string,
  given: readonly string[],
): Promise<string | null> {
  const found = await lookup(address, { all: true }).catch(() => []);
  if (found.length === 0 || !found.every((each) => LOOPBACK.test(each.address))) return null;
  const own = new URL(`http://${isIPv6(address) ? `[${address}]` : address}`).hostname;
  return [...new Set([...OF_THIS_MACHINE, own, ...given])].join(',');
}

/** Parses a value of `--allow-host`: a host name without a scheme or port, as in the header `Host`. */
export function readAllowedHost(text: string): string {
  const host = isIPv6(text) ? `[${text}]` : text;
  const url = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : null;
  if (url !== null && /^(?:[\w.-]+|\[[\da-f:.]+\])$/i.test(host)) return url.hostname;
  throw new TypeError(
    `--allow-host ${text}: expected a host name without a scheme or port. Repeat the option for each name.`,
  );
}
