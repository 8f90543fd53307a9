import { lookup } from 'node:dns/promises';
import { isIPv6 } from 'node:net';

/** Hosts by which every machine can call itself. */
const OF_THIS_MACHINE = ['localhost', '127.0.0.1', '[::1]'];

const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/;

/**
 * Lists the hosts, separated by commas, that Headgate serves if it listens on a loopback address. A web page whose name is
 * pointed there (DNS rebinding) would share an origin with it, but it calls by its own name. Null: all hosts, because other
 * machines reach the address by names that are not known here.
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

/** Reads a value of `--allow-host`: the name of a host without a scheme and a port, as the header Host has it. */
export function readAllowedHost(text: string): string {
  const host = isIPv6(text) ? `[${text}]` : text;
  const url = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : null;
  if (url !== null && /^(?:[\w.-]+|\[[\da-f:.]+\])$/i.test(host)) return url.hostname;
  throw new TypeError(
    `--allow-host ${text}: expected the name of a host, without a scheme and a port. Repeat the option for each name.`,
  );
}
