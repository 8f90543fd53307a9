import { describe, expect, it } from 'vitest';
import { allowedHosts, readAllowedHost } from '../../../scripts/serve/allowed-hosts.ts';

describe('hosts that are served', () => {
  it.each(['127.0.0.1', 'localhost', '::1', '::ffff:127.0.0.1', '127.1'])(
    'are listed where it listens on %s',
    async (address) => {
      const hosts = (await allowedHosts(address, ['gw.example'])) ?? '';
      expect(hosts.split(',')).toEqual(
        expect.arrayContaining(['localhost', '127.0.0.1', '[::1]', 'gw.example']),
      );
    },
  );

  it('have the address itself among them', async () => {
    expect(await allowedHosts('127.0.0.2', [])).toBe('localhost,127.0.0.1,[::1],127.0.0.2');
  });

  it.each(['0.0.0.0', '::', '192.0.2.1'])('are all where it listens on %s', async (address) => {
    expect(await allowedHosts(address, ['gw.example'])).toBeNull();
  });
});

describe('--allow-host', () => {
  it.each([
    ['gw.example', 'gw.example'],
    ['GW.Example', 'gw.example'],
    ['::1', '[::1]'],
    ['[::1]', '[::1]'],
    ['192.0.2.1', '192.0.2.1'],
    ['my_host', 'my_host'],
  ])('%s means %s', (text, host) => {
    expect(readAllowedHost(text)).toBe(host);
  });

  it.each(['', '*', 'https://gw.example', 'gw.example:443', 'gw.example/', 'a,b', 'a b', 'u@h'])(
    '%s is refused',
    (text) => {
      expect(() => readAllowedHost(text)).toThrow('expected a host name');
    },
  );
});
