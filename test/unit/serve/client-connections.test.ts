import { describe, expect, it, vi } from 'vitest';
import {
  ClientConnections,
  proxyList,
  type ClientConnection,
} from '../../../scripts/serve/client-connections.ts';

/** Twenty places: an address may hold two. */
function placesWith(max = 20, proxies: readonly string[] = []) {
  const lines: string[] = [];
  const closed: string[] = [];
  const onLog = (line: string): void => void lines.push(line);
  const places = new ClientConnections({ max, proxies: proxyList(proxies), onLog });
  const take = (address: string, name = address): ClientConnection | null =>
    places.take(address, () => closed.push(name));
  const busy = (address: string): ClientConnection | null => {
    const place = take(address);
    place?.busy();
    return place;
  };
  return { places, lines, closed, take, busy };
}

describe('one address', () => {
  it('holds a tenth of the places, and others are served', () => {
    const { busy } = placesWith();
    const held = [busy('192.0.2.1'), busy('192.0.2.1')];
    expect(held.every((place) => place !== null)).toBe(true);
    expect(busy('192.0.2.1')).toBe(null);
    expect(busy('192.0.2.2')).not.toBe(null);
    held[0]?.leave();
    expect(busy('192.0.2.1')).not.toBe(null);
  });

  it('loses its longest idle connection before a new one is refused', () => {
    const { take, closed } = placesWith();
    const first = take('192.0.2.1', 'first');
    take('192.0.2.1', 'second');
    first?.busy();
    first?.rest();
    expect(take('192.0.2.1', 'third')).not.toBe(null);
    expect(closed).toEqual(['second']);
    first?.busy();
    expect(take('192.0.2.1', 'fourth')).not.toBe(null);
    expect(closed).toEqual(['second', 'third']);
  });

  it.each([
    ['IPv6 that begins with the same 64 bits', '2001:db8:1:2::1', '2001:db8:1:2:ffff::9'],
    ['IPv4 in the form of IPv6', '::ffff:192.0.2.1', '192.0.2.1'],
    ['a link-local address with its interface', 'fe80::1%eth0', 'fe80::2%eth0'],
  ])('is the same as %s', (_what, one, other) => {
    const { busy } = placesWith(10);
    expect(busy(one)).not.toBe(null);
    expect(busy(other)).toBe(null);
  });

  it.each([
    ['2001:db8:1:2::1', '2001:db8:1:3::1'],
    ['::ffff:192.0.2.1', '::ffff:192.0.2.2'],
  ])('%s is another one than %s', (one, other) => {
    const { busy } = placesWith(10);
    expect([busy(one), busy(other)].includes(null)).toBe(false);
  });

  it.each([
    ['loopback', '127.0.0.1', []],
    ['loopback of IPv6', '::1', []],
    ['loopback on a socket for both', '::ffff:127.0.0.1', []],
    ['a named proxy', '10.1.2.3', ['10.1.2.3']],
    ['a proxy of a named network', '10.1.2.3', ['192.0.2.1', '10.0.0.0/8']],
    ['a proxy of IPv6', '2001:db8::7', ['2001:db8::/32']],
  ])('that is a reverse proxy (%s) holds all but a tenth', (_what, address, proxies) => {
    const { busy } = placesWith(20, proxies);
    const held = Array.from({ length: 18 }, () => busy(address));
    expect(held.includes(null)).toBe(false);
    expect(busy(address)).toBe(null);
    expect(busy('198.51.100.1')).not.toBe(null);
  });
});

describe('when all places are taken', () => {
  it('the longest idle connection of any address makes room', () => {
    const { take, closed } = placesWith(10);
    const all = Array.from({ length: 10 }, (_, at) => take(`192.0.2.${at}`));
    all[0]?.busy();
    expect(take('198.51.100.1')).not.toBe(null);
    expect(closed).toEqual(['192.0.2.1']);
    // Its socket closes later, which is counted once.
    all[1]?.leave();
    expect(take('198.51.100.2')).not.toBe(null);
    expect(closed).toEqual(['192.0.2.1', '192.0.2.2']);
  });

  it('a new one is refused while none is idle', () => {
    const { busy, closed } = placesWith(3);
    const all = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map(busy);
    expect(busy('198.51.100.1')).toBe(null);
    expect(closed).toEqual([]);
    all[2]?.rest();
    expect(busy('198.51.100.1')).not.toBe(null);
    expect(closed).toEqual(['192.0.2.3']);
  });
});

it('refusals are logged at once and then once a minute, with the address and what to do', () => {
  const now = vi.spyOn(performance, 'now').mockReturnValue(1_000_000);
  const { places, lines, busy } = placesWith(10);
  busy('192.0.2.1');
  for (let i = 0; i < 500; i += 1) busy('192.0.2.1');
  expect(lines).toEqual([
    'Connections: 1 refused because their address held 1 of 10 places, most recently 192.0.2.1 (if it is a reverse proxy, add it with --trusted-proxy).',
  ]);
  places.noteLateHead();
  now.mockReturnValue(1_059_000);
  places.report();
  expect(lines).toHaveLength(1);
  now.mockReturnValue(1_060_000);
  places.report();
  expect(lines[1]).toMatch(/^Connections: 499 refused .+; 1 closed because no complete/);
  places.report(2_000_000);
  expect(lines).toHaveLength(2);
  now.mockRestore();
});

it.each(['proxy.internal', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '::1/129', '10.0.0'])(
  'refuses the proxy address %s',
  (given) => {
    expect(() => proxyList([given])).toThrow(`--trusted-proxy ${given}: expected an IP address`);
  },
);
