import { describe, expect, it } from 'vitest';
import {
  upstreamRequestHeaders,
  callerResponseHeaders,
} from '../../../../src/upstream/transfer/headers.ts';

describe('headers on the way to the upstream', () => {
  it('keeps what an SDK sends', () => {
    const sent = {
      accept: 'application/json',
      'accept-encoding': 'gzip, deflate',
      'anthropic-beta': 'output-128k-2025-02-19',
      'anthropic-version': '2023-06-01',
      authorization: 'Bearer sk-1',
      'content-encoding': 'gzip',
      'content-type': 'application/json',
      'idempotency-key': 'k1',
      'openai-organization': 'org-1',
      'user-agent': 'OpenAI/JS 7.55.0',
      'x-goog-api-client': 'google-genai-sdk/3.1.0',
      'x-stainless-retry-count': '0',
      'x-stainless-timeout': '600',
    };
    expect(Object.fromEntries(upstreamRequestHeaders(new Headers(sent)))).toEqual(sent);
  });

  it.each([
    'connection',
    'keep-alive',
    'proxy-authenticate',
    'proxy-authorization',
    'proxy-connection',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'host',
    'content-length',
    'expect',
    'headgate-key',
    'headgate-upstream',
    'headgate-max-wait',
    'cf-connecting-ip',
    'cf-ray',
    'cf-visitor',
    'cf-ipcountry',
    'cf-ew-via',
    'cf-worker',
    'cf-access-jwt-assertion',
    'cdn-loop',
    'forwarded',
    'true-client-ip',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-proto',
    'x-real-ip',
  ])('removes %s', (name) => {
    const headers = upstreamRequestHeaders(new Headers([[name, 'x']]));
    expect(headers.has(name)).toBe(false);
  });

  it.each([
    ['a=1; b=2', 'a=1; b=2'],
    ['a=1;b=2', 'a=1;b=2'],
    ['CF_Authorization=ey.x.y; __cf_bm=z', '__cf_bm=z'],
    ['a=1; CF_AppSession=n; CF_Binding=n', 'a=1'],
    ['CF_Authorization=ey.x.y', null],
    ['headgate_session=e.y.J; a=1', 'a=1'],
    ['headgate_status=e.y.J', null],
    ['=headgate_session=e.y.J; a=1', 'a=1'],
    ['b=2, headgate_session=e.y.J; a=1', 'a=1'],
    ['a=hg_0815; b=2; c="hg_0815"; d=hg%5F0815', 'b=2'],
  ])('of the cookies %s leaves %s: none that lets somebody in here', (cookie, left) => {
    expect(upstreamRequestHeaders(new Headers({ cookie })).get('cookie')).toBe(left);
  });

  const MINTED = `hg_${'0123456789abcdef'.repeat(3)}`;

  it.each([
    ['x-session-id', 'hg_0815'],
    ['authorization', 'Bearer hg_0815'],
    ['helicone-auth', 'Bearer hg_0815'],
    ['x-api-keys', 'sk-1, hg_0815'],
    ['sec-websocket-protocol', `openai-insecure-api-key.${MINTED}`],
    ['referer', `https://app.test/?key=${MINTED}`],
    ['x-encoded', 'key%3Dhg%5F0815'],
  ])('removes a gateway key wherever it stands: %s: %s', (name, value) => {
    const headers = upstreamRequestHeaders(new Headers([[name, value]]));
    expect(Object.fromEntries(headers)).toEqual({ 'accept-encoding': 'identity' });
  });

  it('removes the own key of the call, however it begins', () => {
    const own = 'operators-own-key-4711';
    const sent = { 'x-copy': `of ${own}`, cookie: `k=${own}; a=1`, 'x-other': 'operators' };
    const headers = upstreamRequestHeaders(new Headers(sent), null, own);
    expect(Object.fromEntries(headers)).toEqual({
      'accept-encoding': 'identity',
      cookie: 'a=1',
      'x-other': 'operators',
    });
  });

  it.each(['Bearer ya29.hg_x7', 'Bearer sk-projhg_123', 'e.hg_x.y', 'https://a.test/hg_x'])(
    'keeps what has the letters by chance: %s',
    (authorization) => {
      const headers = upstreamRequestHeaders(new Headers({ authorization }));
      expect(headers.get('authorization')).toBe(authorization);
    },
  );

  it('removes what Connection names', () => {
    const headers = upstreamRequestHeaders(
      new Headers({ connection: 'close, X-Hop', 'x-hop': '1', 'x-end': '2' }),
    );
    expect(Object.fromEntries(headers)).toEqual({ 'accept-encoding': 'identity', 'x-end': '2' });
  });

  it("keeps the settings of Cloudflare's AI Gateway, where that is the upstream", () => {
    const headers = upstreamRequestHeaders(
      new Headers({ 'cf-aig-authorization': 'Bearer t', 'cf-aig-cache-ttl': '60' }),
    );
    expect(headers.get('cf-aig-authorization')).toBe('Bearer t');
    expect(headers.get('cf-aig-cache-ttl')).toBe('60');
  });

  it.each<readonly [what: string, string | null, string | null, string]>([
    ['as it came', 'zstd, br', null, 'zstd, br'],
    [
      'with its weights',
      'br;q=1.0, gzip;q=0.8, identity;q=0',
      null,
      'br;q=1.0, gzip;q=0.8, identity;q=0',
    ],
    ['without what cannot be undone', 'dcb, dcz, gzip, compress;q=0.1, br', null, 'gzip, br'],
    ['in the spelling of the caller', 'GZIP;q=0.5,x-gzip', null, 'GZIP;q=0.5, x-gzip'],
    ['identity where nothing of it can be undone', 'compress, dcb', null, 'identity'],
    ['identity where only refused ones can be undone', 'gzip;q=0, compress', null, 'identity'],
    ['that stands for all', '*', null, 'gzip, deflate, br, zstd'],
    [
      'that stands for the others',
      'br, *;q=0.5',
      null,
      'br, gzip;q=0.5, deflate;q=0.5, zstd;q=0.5',
    ],
    ['that forbids the others', 'gzip, *;q=0', null, 'gzip, *;q=0'],
    ['identity where the caller sent none', null, null, 'identity'],
    ['identity where the caller sent an empty one', '', null, 'identity'],
    ['as the caller sent it to Cloudflare', 'gzip, br', 'gzip', 'gzip'],
    ['identity where the caller sent Cloudflare none', 'gzip, br', '', 'identity'],
  ])('asks for an encoding %s', (_what, seen, sentToCloudflare, expected) => {
    const incoming = new Headers(seen === null ? {} : { 'accept-encoding': seen });
    expect(upstreamRequestHeaders(incoming, sentToCloudflare).get('accept-encoding')).toBe(
      expected,
    );
  });

  it('leaves the incoming headers alone', () => {
    const incoming = new Headers({ 'headgate-key': 'hg_1', host: 'gate.example' });
    upstreamRequestHeaders(incoming);
    expect(incoming.get('headgate-key')).toBe('hg_1');
    expect(incoming.get('host')).toBe('gate.example');
  });
});

describe('headers on the way back to the caller', () => {
  it("keeps what is the upstream's", () => {
    const sent = {
      'anthropic-ratelimit-requests-remaining': '999',
      'cache-control': 'no-cache',
      'cf-aig-cache-status': 'MISS',
      'content-encoding': 'gzip',
      'content-length': '17',
      'content-type': 'text/event-stream; charset=utf-8',
      date: 'Fri, 20 Nov 2026 09:00:00 GMT',
      location: 'https://upstream.example/v1/files/2',
      'openai-processing-ms': '12',
      'request-id': 'req_1',
      'retry-after': '2',
      'retry-after-ms': '1500',
      server: 'cloudflare',
      vary: 'accept-encoding',
      'x-ratelimit-remaining-requests': '0',
      'x-request-id': 'req_1',
      'x-should-retry': 'true',
    };
    expect(Object.fromEntries(callerResponseHeaders(new Headers(sent)))).toEqual(sent);
  });

  it.each([
    'connection',
    'keep-alive',
    'proxy-authenticate',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'cf-ray',
    'cf-cache-status',
    'nel',
    'report-to',
    'alt-svc',
    'accept-ch',
    'clear-site-data',
    'refresh',
    'reporting-endpoints',
    'service-worker-allowed',
    'strict-transport-security',
    'access-control-allow-origin',
    'headgate-reason',
    'headgate-lease',
  ])('removes %s', (name) => {
    expect(callerResponseHeaders(new Headers([[name, 'x']])).has(name)).toBe(false);
  });

  it('removes what Connection names', () => {
    const headers = callerResponseHeaders(
      new Headers({ connection: 'keep-alive, x-hop', 'x-hop': '1', 'x-end': '2' }),
    );
    expect(Object.fromEntries(headers)).toEqual({ 'x-end': '2' });
  });

  it('removes everything that goes with a CORS origin', () => {
    const headers = callerResponseHeaders(
      new Headers({
        'access-control-allow-origin': '*',
        'access-control-allow-credentials': 'true',
        'access-control-expose-headers': '*',
        vary: 'origin',
      }),
    );
    expect(Object.fromEntries(headers)).toEqual({ vary: 'origin' });
  });

  it.each([
    'headgate_session=evil; Path=/',
    'Headgate_Status=evil; Path=/openai',
    ' =headgate_session=evil',
    'CF_Authorization=evil',
    'a=1; Path=/admin',
    'a=1; path="/admin/api"; Secure',
    'a=1; Path=/openai; Path = /status',
    'a=1;PATH=/metrics;HttpOnly',
  ])('keeps an upstream out of the cookies of Headgate: %s', (cookie) => {
    const upstream = new Headers([
      ['set-cookie', cookie],
      ['set-cookie', 'b=2; Path=/administrators'],
    ]);
    expect(callerResponseHeaders(upstream).getSetCookie()).toEqual(['b=2; Path=/administrators']);
  });

  it('keeps every Set-Cookie apart', () => {
    const first = '__cf_bm=a; path=/; expires=Fri, 20-Nov-26 10:00:00 GMT; HttpOnly';
    const upstream = new Headers([
      ['set-cookie', first],
      ['set-cookie', '_cfuvid=b; path=/'],
      ['cf-ray', 'x'],
    ]);
    expect(callerResponseHeaders(upstream).getSetCookie()).toEqual([first, '_cfuvid=b; path=/']);
  });
});
