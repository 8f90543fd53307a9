import { SERVED_METHODS } from '../../src/contract/http.ts';
import type { Malformed } from '../../src/http/malformed.ts';

export type BodyLength = number | 'chunked';

/** A request line. Paths and values may contain anything except control characters. */
const METHOD = `(?:${SERVED_METHODS.join('|')}) `;
const REQUEST_LINE = new RegExp(`^${METHOD}/[\\x21-\\x7e\\x80-\\xff]* HTTP/1\\.[01]$`);

/** A request line with a method that is not served, and any target. */
const OTHER_METHOD = new RegExp(
  `^(?!${METHOD})[!#$%&'*+.^_\`|~\\w-]+ [\\x21-\\x7e\\x80-\\xff]+ HTTP/1\\.[01]$`,
);
const HEADERS = /^(?:[!#$%&'*+.^_`|~\w-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;

/** The headers that determine the target and the end of a request. workerd returns 500 for a space after a value. */
const FRAMING = /^(host|content-length|transfer-encoding):[\t ]*(.*)\r$/gim;

const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d*)?$/i;
const LENGTH = /^\d{1,15}$/;

/** Recently accepted hosts, because most clients send the same one. */
const goodHosts = new Set<string>();
const GOOD_HOSTS_MAX = 64;

function isHost(text: string): boolean {
  if (goodHosts.has(text)) return true;
  if (!HOST.test(text) || !URL.canParse(`http://${text}/`)) return false;
  if (goodHosts.size >= GOOD_HOSTS_MAX) goodHosts.clear();
  goodHosts.add(text);
  return true;
}

/**
 * Parses the head of a request strictly. A head that two parsers could interpret differently is malformed. `text`
 * contains every line with its CR LF, without the final empty line.
 */
export function readHead(text: string): BodyLength | Malformed {
  const lineEnd = text.indexOf('\r\n');
  const line = text.slice(0, lineEnd);
  if (!REQUEST_LINE.test(line)) return OTHER_METHOD.test(line) ? 'method' : 'request-line';
  const headers = text.slice(lineEnd + 2);
  if (!HEADERS.test(headers)) return 'header';
  const found: Record<string, string> = {};
  for (const [, name = '', value = ''] of headers.matchAll(FRAMING)) {
    const known = name.toLowerCase() as 'host' | 'content-length' | 'transfer-encoding';
    if (found[known] !== undefined) return known;
    found[known] = value;
  }
  const { host, 'content-length': length, 'transfer-encoding': encoding } = found;
  if (host === undefined || !isHost(host)) return 'host';
  if (encoding !== undefined) {
    const isClear = /^chunked$/i.test(encoding) && length === undefined;
    return isClear && text.startsWith('HTTP/1.1', lineEnd - 8) ? 'chunked' : 'transfer-encoding';
  }
  if (length === undefined) return 0;
  return LENGTH.test(length) ? Number(length) : 'content-length';
}
