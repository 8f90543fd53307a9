import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import {
  jsonLine,
  readLines,
  repeatFilter,
  safeLine,
  shutdownFilter,
  textLine,
} from '../../../scripts/serve/log-lines.ts';

async function linesOf(...pieces: Buffer[]): Promise<string[]> {
  const lines: string[] = [];
  const stream = Readable.from(pieces, { objectMode: false });
  readLines(stream, (line) => lines.push(line));
  await new Promise((resolve) => stream.once('end', resolve));
  return lines;
}

describe('readLines', () => {
  it('ends a line at LF and nowhere else', async () => {
    const text = 'a\rb\u2028c\u2029d\u0085e\vf\fg\nh';
    expect(await linesOf(Buffer.from(text))).toEqual(['a\rb\u2028c\u2029d\u0085e\vf\fg', 'h']);
  });

  it('puts lines and characters together that arrive in pieces', async () => {
    const bytes = Buffer.from('first \u2028 line\nsecond: ü\n');
    const pieces = [...bytes].map((byte) => Buffer.from([byte]));
    expect(await linesOf(...pieces)).toEqual(['first \u2028 line', 'second: ü']);
  });

  it('cuts the end of a line without end, and goes on behind it', async () => {
    const pieces = Array.from({ length: 100 }, () => Buffer.alloc(10_000, 'x'));
    const [long = '', next] = await linesOf(...pieces, Buffer.from('\nnext\n'));
    expect(long.length).toBeLessThanOrEqual(16_384);
    expect(next).toBe('next');
  });
});

describe('safeLine', () => {
  it.each([
    ['ESC', 'a\u001b[2Jb', 'a\\u001b[2Jb'],
    ['C1', 'a\u009b2Jb', 'a\\u009b2Jb'],
    ['CR', 'a\rb', 'a\\u000db'],
    ['U+2028', 'a\u2028b', 'a\\u2028b'],
    ['U+2029', 'a\u2029b', 'a\\u2029b'],
    ['U+202E', 'a\u202eb', 'a\\u202eb'],
    ['NUL', 'a\u0000b', 'a\\u0000b'],
  ])('escapes %s', (_name, line, shown) => {
    expect(safeLine(line)).toBe(shown);
  });

  it('leaves the events of the Worker as they are, and their JSON what it was', () => {
    const event = { event: 'upstream_refused', error: 'key = x?y=z \u2028 \u001b' };
    expect(JSON.parse(safeLine(JSON.stringify(event)))).toEqual(event);
    expect(safeLine(JSON.stringify(event))).not.toContain('\u2028');
  });

  it.each([
    'kj/compat/url.c++:165: failed: invalid URL; url = http://h/v1?key=sk-secret',
    'kj/compat/url.c++:453: failed: invalid hostname; host = a; sk-secret = b; c = sk-secret',
    'kj/compat/http.c++:1669: failed: invalid size; text = sk-secret; text.asBytes() = 115, 107',
    'fetch of https://api.test/v1?key=sk-secret failed',
    'fetch of https://sk-secret@api.test/v1 failed',
    'GET /v1/files?of=sk-secret failed',
    'GET /gemini/v1beta/models?key=sk-secret failed',
    'headers were authorization: Bearer sk-secret',
    'X-Api-Key: sk-secret',
    '{"x-goog-api-key":"sk-secret"}',
    'cookie=sk-secret',
    'a caller with Bearer sk-secret',
    '{"event":"forged", key = sk-secret',
  ])('cuts what may be a URL or a header: %s', (line) => {
    expect(safeLine(line)).not.toContain('secret');
    expect(safeLine(line)).toContain('…');
  });

  it('cuts a word that is longer than any of ours, which would take seconds to look through', () => {
    expect(safeLine(`failed: ${'a-'.repeat(8_000)} at`)).toBe('failed: … at');
  });

  it('leaves what says where something went wrong', () => {
    const line =
      'workerd/server/server.c++:6685: error: Uncaught exception: kj/compat/url.c++:165: failed: invalid URL';
    expect(safeLine(`${line}; url = *`)).toBe(`${line}; url = …`);
    expect(safeLine('stack: /opt/workerd@5688f32 /opt/workerd@2194363')).toContain('@5688f32');
  });
});

describe('a line of the log', () => {
  const at = new Date('2026-11-24T03:00:00.000Z');
  const line = { at, level: 'warn', event: 'workerd', message: 'a "b"' } as const;

  it('is JSON with its time and level', () => {
    expect(JSON.parse(jsonLine(line))).toEqual({ ...line, at: at.toISOString() });
  });

  it('that is an event of the Worker keeps its own level and name', () => {
    const event = { event: 'internal_error', level: 'error', name: 'TypeError' };
    expect(JSON.parse(jsonLine({ ...line, message: JSON.stringify(event) }))).toEqual({
      at: at.toISOString(),
      ...event,
    });
  });

  it('is a text before a terminal', () => {
    expect(textLine(line)).toBe('2026-11-24T03:00:00.000Z warn  a "b"');
  });
});

describe('the filter of what ends', () => {
  const ABORTED = [
    'workerd/io/io-context.c++:411: error: Uncaught exception: aborted; stack: 7f00 7f01',
    'stack: 55d0c0a1 55d0c0a2',
    'workerd/io/io-context.c++:411:3: returning here',
    '*** Received signal #15: Terminated',
    'kj/compat/http.c++:120: error: disconnected: connection was cut; stack: 1 2',
  ];
  const REPORTED = [
    'workerd/util/sqlite.c++:77: error: database or disk is full: SQLITE_FULL',
    '{"event":"warning","level":"warn","message":"aborted"}',
    'a line of nobody that says aborted',
  ];
  const passed = (lines: readonly string[], isStopping: boolean): string[] =>
    lines.filter(shutdownFilter(() => isStopping));

  it('lets through all lines while nobody wants the end', () => {
    expect(passed([...ABORTED, ...REPORTED], false)).toEqual([...ABORTED, ...REPORTED]);
  });

  it('keeps back what was cut and its stack, and nothing else that goes wrong', () => {
    expect(passed(ABORTED, true)).toEqual([]);
    expect(passed(REPORTED, true)).toEqual(REPORTED);
    const after = REPORTED.flatMap((reported) => [...ABORTED, reported]);
    expect(passed(after, true)).toEqual(REPORTED);
  });
});

describe('repeatFilter', () => {
  it('passes one of equal lines of workerd in ten seconds, without the stacks of the others', () => {
    let now = 0;
    const filter = repeatFilter(() => now);
    const full = (line: number): string =>
      `workerd/util/sqlite.c++:${line}: failed: SQLite failed; error = SQLITE_FULL`;
    const stack = 'stack: /usr/bin/workerd@454e7c7 /usr/bin/workerd@4560635';
    const event = '{"event":"directory_unreachable","level":"warn"}';
    expect([full(1), stack].map(filter)).toEqual([full(1), stack]);
    for (let at = 0; at < 20; at += 1) {
      now += 100;
      expect([full(at), stack, event].map(filter)).toEqual([null, null, event]);
    }
    const other = 'workerd/io/worker.c++:2: error: another';
    expect([other, stack, 'a separate line'].map(filter)).toEqual([
      other,
      stack,
      'a separate line',
    ]);
    now += 10_000;
    expect(filter(full(1))).toBe(`${full(1)} (20 similar omitted)`);
  });
});
