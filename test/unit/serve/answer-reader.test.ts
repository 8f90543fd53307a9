import { describe, expect, it } from 'vitest';
import { AnswerReader } from '../../../scripts/serve/answer-reader.ts';

const GET = 'GET / HTTP/1.1\r\nHost: h\r\n';
const HEAD = 'HEAD / HTTP/1.1\r\nHost: h\r\n';
const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\n0\r\n\r\n\r\n0\r\n\r\n`;

/** Reads an answer in two parts, cut everywhere. Answers where it is taken for whole. */
function wholeAt(requests: readonly string[], answer: string): boolean {
  const bytes = Buffer.from(answer);
  const ends = Array.from({ length: bytes.length }, (_, cut) => {
    const reader = new AnswerReader();
    for (const head of requests) reader.expect(head);
    const first = Buffer.from(bytes.subarray(0, cut));
    reader.follow(first);
    // As the next read from a connection does.
    first.fill(0);
    if (reader.isAtRest) return false;
    reader.follow(bytes.subarray(cut));
    return reader.isAtRest;
  });
  return ends.every(Boolean);
}

describe('answers, wherever they are cut', () => {
  it.each([
    ['of a known length', [GET], `${OK}Content-Length: 5\r\n\r\nHello`],
    ['without a byte', [GET], `${OK}content-length: 0\r\n\r\n`],
    ['in chunks, one of which looks like the end', [GET], CHUNKED],
    ['without a body', [GET], 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['to HEAD, with a length', [HEAD], `${OK}Content-Length: 5\r\n\r\n`],
    ['after one that is not the last', [GET], `HTTP/1.1 103 Early Hints\r\n\r\n${CHUNKED}`],
    ['to several requests', [GET, HEAD, GET], `${CHUNKED}${OK}Content-Length: 5\r\n\r\n${CHUNKED}`],
  ] as const)('%s end with their last byte, and not before', (_, requests, answer) => {
    expect(wholeAt(requests, answer)).toBe(true);
  });
});

describe('a connection whose end the client is to see', () => {
  it.each([
    ['says so in the answer', GET, `${OK}Connection: close\r\nContent-Length: 0\r\n\r\n`],
    ['was asked to', `${GET}Connection: close\r\n`, `${OK}Content-Length: 0\r\n\r\n`],
    ['is of HTTP/1.0', 'GET / HTTP/1.0\r\nHost: h\r\n', `${OK}Content-Length: 0\r\n\r\n`],
    ['has a body without an end of its own', GET, `${OK}\r\nHello`],
    ['becomes another protocol', GET, 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['has a chunk that is none', GET, `${OK}Transfer-Encoding: chunked\r\n\r\nx\r\n0\r\n\r\n`],
    ['speaks something else', GET, 'SSH-2.0\r\n\r\n'],
  ])('%s', (_, request, answer) => {
    const reader = new AnswerReader();
    reader.expect(request);
    reader.follow(Buffer.from(answer));
    expect(reader.isAtRest).toBe(false);
  });

  it.each([
    ['whole', `${OK}Connection: close\r\nContent-Length: 2\r\n\r\nok`, true],
    ['cut', `${OK}Connection: close\r\nContent-Length: 2\r\n\r\no`, false],
    ['without an end of its own', `${OK}Connection: close\r\n\r\nok`, false],
  ])('is over with the last answer: %s', (_, answer, isOver) => {
    const reader = new AnswerReader();
    reader.expect(GET);
    reader.follow(Buffer.from(answer));
    expect(reader.isOver).toBe(isOver);
  });

  it('says what nobody has asked for', () => {
    const reader = new AnswerReader();
    expect(reader.isAtRest).toBe(true);
    reader.follow(Buffer.from(`${OK}Content-Length: 0\r\n\r\n`));
    expect(reader.isAtRest).toBe(false);
  });
});
