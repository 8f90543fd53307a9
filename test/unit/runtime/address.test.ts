import { describe, expect, it } from 'vitest';
import { addressOf } from '../../../src/runtime/origin.ts';

/** Whose address counts as whose, for what slows wrong keys and tokens down. */
const onCloudflare = (address: string): string =>
  addressOf({}, { headers: new Headers({ 'cf-connecting-ip': address }) });

const hosted = (clientIp: string): string =>
  addressOf({ BOOT_ID: 'b' }, { headers: new Headers(), cf: { clientIp } });

describe.each([
  ['on Cloudflare', onCloudflare],
  ['hosted by oneself', hosted],
])('%s', (_, addressFor) => {
  it.each([
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff'],
    ['2001:db8:1:2::1', '2001:DB8:0001:0002:0:0:0:7'],
    ['2001:db8::1', '2001:db8:0:0:1:2:3:4'],
    ['fe80::1', 'fe80::2%eth0'],
  ])('%s counts as %s, which begins with the same 64 bits', (one, other) => {
    expect(addressFor(one)).toBe(addressFor(other));
  });

  it.each([
    ['2001:db8:1:2::1', '2001:db8:1:3::1'],
    ['2001:db8::1', '2001:db8:0:1::1'],
    ['::ffff:192.0.2.1', '::ffff:192.0.2.2'],
    ['192.0.2.1', '192.0.2.2'],
    // Mapped are only those that begin with eighty zeros.
    ['192.0.2.1', '1::ffff:192.0.2.1'],
  ])('%s does not count as %s', (one, other) => {
    expect(addressFor(one)).not.toBe(addressFor(other));
  });

  it.each(['::ffff:192.0.2.1', '::FFFF:c000:201', '0:0:0:0:0:ffff:192.0.2.1'])(
    '%s, which is of IPv4, counts as what it is there',
    (mapped) => {
      expect(addressFor(mapped)).toBe('192.0.2.1');
    },
  );

  it.each(['192.0.2.1', 'unknown', 'a:b', ''])('%j is what it is', (address) => {
    expect(addressFor(address)).toBe(address);
  });
});

it('who comes from nowhere that is known counts with everybody else', () => {
  expect(addressOf({}, { headers: new Headers() })).toBe('everybody');
  expect(addressOf({ BOOT_ID: 'b' }, { headers: new Headers(), cf: {} })).toBe('everybody');
});
