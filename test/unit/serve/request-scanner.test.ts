import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RequestScanner } from '../../../scripts/serve/request-scanner.ts';

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');

const GET = 'GET /a?b=c HTTP/1.1\r\nHost: h\r\n\r\n';
const post = (headers: string, body = ''): string =>
  `POST /p HTTP/1.1\r\nHost: h:8787\r\n${headers}\r\n${body}`;
const CHUNKED = post('Transfer-Encoding: chunked\r\n', '4\r\nabcd\r\nA\r\n0123456789\r\n0\r\n\r\n');
const SIZED = post('Content-Length: 30\r\n', GET.slice(0, 30));

interface RequestScannerResult {
  readonly passed: string;
  readonly malformed: string | null;
  readonly isUnderWay: boolean;
}

/** Passes on bytes that arrive in pieces of the given lengths. */
function scan(text: string, cuts: readonly number[] = [], added = ''): RequestScannerResult {
  const scanner = new RequestScanner(added);
  const bytes = latin1(text);
  const edges = [...new Set([0, ...cuts.map((cut) => cut % bytes.length), bytes.length])];
  edges.sort((a, b) => a - b);
  let passed = '';
  for (const [index, from] of edges.slice(0, -1).entries()) {
    const result = scanner.scan(bytes.subarray(from, edges[index + 1]));
    passed += result.bytes.toString('latin1');
    const { malformed, isUnderWay } = result;
    if (malformed !== null) return { passed, malformed, isUnderWay };
  }
  return { passed, malformed: null, isUnderWay: false };
}

const wellPassed = (passed: string): RequestScannerResult => ({
  passed,
  malformed: null,
  isUnderWay: false,
});

describe('proper requests', () => {
  it.each([
    ['one', GET],
    ['several at once', GET + SIZED + CHUNKED + GET],
    ['a body that looks like a request', post(`Content-Length: ${GET.length}\r\n`, GET) + GET],
    [
      'a chunk that looks like the end',
      post('Transfer-Encoding: Chunked\r\n', '5\r\n0\r\n\r\n\r\n0\r\n\r\n'),
    ],
    ['other spellings', 'GET / HTTP/1.1\r\nhOST:h\r\ncontent-length:\t0\r\n\r\n'],
    ['an address in brackets', 'GET / HTTP/1.1\r\nHost: [::1]:8787\r\n\r\n'],
    ['bytes above ASCII', 'GET /\xfc HTTP/1.1\r\nHost: h\r\nX: \xff\t\xfe\r\n\r\n'],
    ['the version before', 'GET / HTTP/1.0\r\nHost: h\r\n\r\n'],
    ['Expect', post('Expect: 100-continue\r\nContent-Length: 4\r\n', 'abcd') + GET],
  ])('pass as they are, wherever they are cut: %s', (_name, text) => {
    expect(scan(text)).toEqual(wellPassed(text));
    for (let cut = 1; cut < text.length; cut += 1) {
      expect(scan(text, [cut])).toEqual(wellPassed(text));
    }
    const bytewise = Array.from({ length: text.length }, (_, i) => i);
    expect(scan(text, bytewise)).toEqual(wellPassed(text));
  });

  it('pass in any number and order, wherever they are cut', () => {
    const requests = fc.array(fc.constantFrom(GET, SIZED, CHUNKED), { minLength: 1, maxLength: 6 });
    const cuts = fc.array(fc.nat(2_000), { maxLength: 8 });
    fc.assert(
      fc.property(requests, cuts, (list, at) => {
        expect(scan(list.join(''), at)).toEqual(wellPassed(list.join('')));
      }),
    );
  });

  it('get the lines that are added at the end of each head, wherever they are cut', () => {
    const requests = fc.array(fc.constantFrom(GET, SIZED, CHUNKED), { minLength: 1, maxLength: 6 });
    const cuts = fc.array(fc.nat(2_000), { maxLength: 8 });
    const added = 'x-from: 192.0.2.1\r\n';
    const withAdded = (request: string): string => request.replace('\r\n\r\n', `\r\n${added}\r\n`);
    fc.assert(
      fc.property(requests, cuts, (list, at) => {
        const passed = list.map(withAdded).join('');
        expect(scan(list.join(''), at, added)).toEqual(wellPassed(passed));
        const badBody = post('Transfer-Encoding: chunked\r\n', 'no size\r\n');
        expect(scan(`${list.join('')}${badBody}`, [], added)).toEqual({
          passed,
          malformed: 'chunk',
          isUnderWay: false,
        });
        const bad = scan(`${list.join('')}GET /\r\n\r\n`, at, added);
        expect(bad).toEqual({ passed, malformed: 'request-line', isUnderWay: false });
      }),
    );
  });

  it('hold back the beginning of a head alone', () => {
    const scanner = new RequestScanner();
    expect(scanner.scan(latin1(`${GET}GET /secret HTTP/1.1\r\nHo`)).bytes.toString()).toBe(GET);
  });

  it('of a large body nothing is held back or copied', () => {
    const scanner = new RequestScanner();
    scanner.scan(latin1(post('Content-Length: 1000000\r\n')));
    const piece = Buffer.alloc(500_000);
    expect(scanner.scan(piece).bytes).toBe(piece);
    expect(scanner.scan(piece).bytes).toBe(piece);
    expect(scanner.scan(latin1(GET)).bytes.toString()).toBe(GET);
  });
});

const get = (headers: string): string => `GET / HTTP/1.1\r\n${headers}\r\n`;

const MALFORMED: readonly (readonly [string, string, string])[] = [
  ['an absolute URL', 'GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n', 'request-line'],
  ['*', 'OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n', 'request-line'],
  ['CONNECT', 'CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n', 'method'],
  ['CONNECT with a path', 'CONNECT / HTTP/1.1\r\nHost: h\r\n\r\n', 'method'],
  ...['TRACE', 'TRACK', 'DEBUG', 'PROPFIND', 'QUERY', 'NO_SUCH', 'M-1', 'get', 'Post', 'trace'].map(
    (method) =>
      [`the method ${method}`, `${method} /a HTTP/1.1\r\nHost: h\r\n\r\n`, 'method'] as const,
  ),
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'request-line'],
  ['another version', 'GET / HTTP/1.2\r\nHost: h\r\n\r\n', 'request-line'],
  ['no version', 'GET /\r\nHost: h\r\n\r\n', 'request-line'],
  ['two spaces', 'GET  / HTTP/1.1\r\nHost: h\r\n\r\n', 'request-line'],
  ['a space in the path', 'GET /a b HTTP/1.1\r\nHost: h\r\n\r\n', 'request-line'],
  ['a control in the path', 'GET /a\x1bb HTTP/1.1\r\nHost: h\r\n\r\n', 'request-line'],
  ['no Host', get('X: y\r\n'), 'host'],
  ['an empty Host', get('Host:\r\n'), 'host'],
  ['two Hosts', get('Host: h\r\nhost: h\r\n'), 'host'],
  ['a space behind the Host', get('Host: h \r\n'), 'host'],
  ['a tab behind a length', post('Content-Length: 4\t\r\n', 'abcd'), 'content-length'],
  ['a Host with a path', get('Host: h/a\r\n'), 'host'],
  ['a Host with a user', get('Host: u@h\r\n'), 'host'],
  ['a Host that is no address', get('Host: 999.1.1.1\r\n'), 'host'],
  ['a port that is none', get('Host: h:99999\r\n'), 'host'],
  ['a folded line', get('Host: h\r\nX: a\r\n b\r\n'), 'header'],
  ['a space before the colon', get('Host : h\r\n'), 'header'],
  ['no colon', get('Host: h\r\nX\r\n'), 'header'],
  ['no name', get('Host: h\r\n: x\r\n'), 'header'],
  ['a bare CR', get('Host: h\r\nX: a\rb\r\n'), 'header'],
  ['a bare LF', get('Host: h\r\nX: a\nContent-Length: 4\r\n'), 'header'],
  ['LF alone at every end', 'GET / HTTP/1.1\nHost: h\n\n', 'request-line'],
  ['NUL', get('Host: h\r\nX: a\0\r\n'), 'header'],
  ['a length with a sign', post('Content-Length: +4\r\n', 'abcd'), 'content-length'],
  ['a length that is none', post('Content-Length: 4a\r\n', 'abcd'), 'content-length'],
  ['an empty length', post('Content-Length:\r\n'), 'content-length'],
  ['two lengths', post('Content-Length: 4\r\ncontent-length: 4\r\n', 'abcd'), 'content-length'],
  ['a list of lengths', post('Content-Length: 4, 4\r\n', 'abcd'), 'content-length'],
  ['a length beyond all', post('Content-Length: 18446744073709551616\r\n'), 'content-length'],
  ['another coding', post('Transfer-Encoding: gzip, chunked\r\n'), 'transfer-encoding'],
  ['identity', post('Transfer-Encoding: identity\r\n'), 'transfer-encoding'],
  [
    'two codings',
    post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n'),
    'transfer-encoding',
  ],
  ['both', post('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n'), 'transfer-encoding'],
  [
    'both, the other way round',
    post('Transfer-Encoding: chunked\r\nContent-Length: 4\r\n'),
    'transfer-encoding',
  ],
  [
    'chunks before 1.1',
    'POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n',
    'transfer-encoding',
  ],
  ['a head without end', get(`Host: h\r\nX: ${'x'.repeat(70_000)}\r\n`), 'head'],
];

describe('a request for a WebSocket', () => {
  const UPGRADE = 'GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nuPGRADE: WebSocket\r\n\r\n';

  it('passes as others do, and what is behind it waits', () => {
    const whole = latin1(`${GET}${UPGRADE}\x81\x05hello`);
    for (let cut = 1; cut < whole.length; cut += 1) {
      const scanner = new RequestScanner();
      const first = scanner.scan(whole.subarray(0, cut));
      const rest = whole.subarray(cut);
      // What comes behind it is no longer scanned.
      const second = first.behind === null ? scanner.scan(rest) : { bytes: '', behind: rest };
      expect(`${first.bytes.toString()}${second.bytes.toString()}`).toBe(`${GET}${UPGRADE}`);
      const behind = Buffer.concat([first.behind, second.behind].map((b) => b ?? Buffer.alloc(0)));
      expect(behind.toString('latin1')).toBe('\x81\x05hello');
    }
  });

  it.each([
    ['POST', post('Upgrade: websocket\r\n')],
    ['a body', UPGRADE.replace('\r\n\r\n', '\r\nContent-Length: 4\r\n\r\nabcd')],
    ['another protocol', GET.replace('\r\n\r\n', '\r\nUpgrade: h2c\r\n\r\n')],
    [
      'its words elsewhere',
      GET.replace('\r\n\r\n', '\r\nX-Upgrade: websocket\r\nX: Upgrade: websocket\r\n\r\n'),
    ],
  ])('is none with %s', (_name, text) => {
    expect(new RequestScanner().scan(latin1(text + GET))).toMatchObject({
      bytes: latin1(text + GET),
      behind: null,
    });
  });
});

describe('malformed requests', () => {
  it.each(MALFORMED)('never pass: %s', (_name, text, what) => {
    for (const before of ['', GET, SIZED + CHUNKED]) {
      const expected = { passed: before, malformed: what, isUnderWay: false };
      expect(scan(before + text + GET)).toEqual(expected);
    }
  });

  it.each(MALFORMED.filter(([, , what]) => what !== 'head'))(
    'never pass, wherever they are cut: %s',
    (_name, text) => {
      const whole = SIZED + text + GET;
      for (let cut = 1; cut < whole.length; cut += 1) {
        const { passed, malformed } = scan(whole, [cut]);
        expect({ passed, isMalformed: malformed !== null }).toEqual({
          passed: SIZED,
          isMalformed: true,
        });
      }
    },
  );

  it.each([
    ['no size', '\r\n'],
    ['a sign', '+4\r\nabcd\r\n'],
    ['an extension', '4;a=b\r\nabcd\r\n'],
    ['a space', '4 \r\nabcd\r\n'],
    ['LF alone', '4\nabcd\r\n'],
    ['more bytes than it says', '4\r\nabcde\r\n'],
    ['a size beyond all', '1000000000000\r\n'],
    ['trailers', '0\r\nX: y\r\n\r\n'],
  ])('a chunk with %s breaks the request off', (_name, chunks) => {
    const head = post('Transfer-Encoding: chunked\r\n');
    const bad = { passed: GET, malformed: 'chunk', isUnderWay: false };
    expect(scan(GET + head + chunks + GET)).toEqual(bad);
    // A part of it is on its way already.
    const late = scan(GET + head + chunks + GET, [GET.length + head.length]);
    expect(late).toEqual({ passed: GET + head, malformed: 'chunk', isUnderWay: true });
  });

  it('another protocol is told at its first byte', () => {
    expect(new RequestScanner().scan(latin1('\x16\x03\x01\x02')).malformed).not.toBe(null);
  });
});
