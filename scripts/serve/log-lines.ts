import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/** Maximum length of a line. Lines of Headgate itself are much shorter. */
const LINE_LENGTH_MAX = 16_384;

/**
 * Control characters, all kinds of line ends, and characters that change the direction of text. On a terminal or in a
 * viewer they would make one line look like another, or like two.
 */
// oxlint-disable-next-line no-control-regex -- the expression matches control characters on purpose
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Escapes invisible characters and those that move other text. */
export const escapeUnseen = (text: string): string =>
  text.replaceAll(UNSEEN, (unseen) => `\\u${unseen.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Words that are longer than any word or stack frame. They are removed, because searching them is slow. */
const LONG_WORD = /\S{200,}/g;

/** Values that workerd adds to its errors, as in `; url = http://…`. They may contain anything that a client sent. */
const VALUES = /(; [\w.()>-]+ = ).*/s;

const ADDRESS = /\b[a-z][a-z0-9+.-]*:\/\/\S*|\S*\?\S*/gi;
const CREDENTIAL = /\b(bearer|basic)\s+\S+/gi;
const HEADER = /([\w-]*(?:authorization|cookie|key|token|secret)["']?\s*[:=]).*/gi;

function isEvent(line: string): boolean {
  if (!line.startsWith('{"event":')) return false;
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns a line of workerd's output without secrets. Events of the Worker contain none. In workerd's own lines, URLs,
 * headers and values are removed, because they may repeat what a client sent.
 */
export function safeLine(line: string): string {
  if (isEvent(line)) return escapeUnseen(line);
  const cut = line
    .replaceAll(LONG_WORD, '…')
    .replace(VALUES, '$1…')
    .replaceAll(ADDRESS, '…')
    .replaceAll(CREDENTIAL, '$1 …')
    .replaceAll(HEADER, '$1 …');
  return escapeUnseen(cut);
}

/** A position in workerd's source, which starts its own log lines and stack frames. */
const CPP_PLACE = /^\S+\.(?:c\+\+|cc|h|capnp):\d+/;

/** Following lines of a stack: addresses, and frames with or without a source position. */
const STACK =
  /^(?:stack:|\*\*\* |\s|0x|\S+@[0-9a-f]+)|^\S+\.(?:c\+\+|cc|h|capnp):\d+(?::\d+)?: (?:\w+::|returning )/;

/** Words of workerd for work that was cut by its shutdown. */
const CUT_SHORT = /abort|cancel|disconnect|broken|terminat|shutdown|shutting down|destroyed/i;

/**
 * Creates a filter that drops, during the shutdown, workerd's lines about work that was cut, with their stacks. No
 * action can follow from them. Other errors are still logged.
 */
export function shutdownFilter(isStopping: () => boolean): (line: string) => boolean {
  let inStack = false;
  return (line) => {
    if (!isStopping() || isEvent(line)) return true;
    const isPlace = CPP_PLACE.test(line) || line.startsWith('*** ');
    inStack = (inStack && STACK.test(line)) || (isPlace && CUT_SHORT.test(line));
    return !inStack;
  };
}

/** Minimum time between two equal lines of workerd, and maximum number of remembered lines. */
const REPEATED_EVERY_MS = 10_000;
const REPEATED_MAX = 100;

/**
 * Creates a filter for workerd's repeated lines, as on a full disk, where each write logs several with their stacks. It
 * passes one of equal lines in ten seconds, with the number of omitted lines. It returns null for an omitted line.
 */
export function repeatFilter(now: () => number = Date.now): (line: string) => string | null {
  const seen = new Map<string, { readonly at: number; leftOut: number }>();
  let inStack = false;
  return (line) => {
    if (isEvent(line)) return line;
    if (inStack && STACK.test(line)) return null;
    inStack = false;
    if (!CPP_PLACE.test(line)) return line;
    const kind = line.replaceAll(/\d+/g, '0');
    const last = seen.get(kind);
    if (last !== undefined && now() - last.at < REPEATED_EVERY_MS) {
      last.leftOut += 1;
      inStack = true;
      return null;
    }
    if (seen.size >= REPEATED_MAX) seen.clear();
    seen.set(kind, { at: now(), leftOut: 0 });
    const leftOut = last?.leftOut ?? 0;
    return leftOut === 0 ? line : `${line} (${leftOut} similar omitted)`;
  };
}

export interface LogLine {
  readonly at: Date;
  readonly level: 'info' | 'warn' | 'error';
  /** `serve` or `workerd`, unless the line is an event itself. */
  readonly event: string;
  readonly message: string;
}

/** Formats a line as JSON with its time and level. An event of the Worker already has a level. */
export function jsonLine({ at, level, event, message }: LogLine): string {
  const time = at.toISOString();
  if (isEvent(message)) return `{"at":"${time}",${message.slice(1)}`;
  return JSON.stringify({ at: time, level, event, message });
}

/** Formats a line for a terminal. */
export function textLine({ at, level, message }: LogLine): string {
  return `${at.toISOString()} ${level.padEnd(5)} ${message}`;
}

/** Calls `onLine` for every line of a stream. Only LF ends a line. Very long lines are truncated. */
export function readLines(stream: Readable | null, onLine: (line: string) => void): void {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  stream?.on('data', (data: Buffer) => {
    const lines = (rest + decoder.write(data)).split('\n');
    rest = (lines.pop() ?? '').slice(0, LINE_LENGTH_MAX);
    for (const line of lines) onLine(line.slice(0, LINE_LENGTH_MAX));
  });
  stream?.on('end', () => {
    if (rest !== '') onLine(rest);
  });
}
