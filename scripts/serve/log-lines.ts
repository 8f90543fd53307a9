import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/** Maximum length of a line: nothing that we write is nearly as long. */
const LINE_LENGTH_MAX = 16_384;

/**
 * Controls, line ends of every kind, and what turns the direction of a text: on a terminal or in a viewer
 * they would make one line look like another, or like two.
 */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Escapes what would not be seen, or would move what is. */
export const escapeUnseen = (text: string): string =>
  text.replaceAll(UNSEEN, (unseen) => `\\u${unseen.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Maximum length of a word: none is as long, nor a part of a stack, and to look through such a one takes time. */
const LONG_WORD = /\S{200,}/g;

/** Values that workerd adds to its errors, as in `; url = http://…`: they may hold whatever a caller sent. */
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
 * Writes a line of workerd's output as it may be shown. Events of the Worker hold no secrets by themselves; what
 * workerd says itself is cut where it may repeat a URL, a header or a body.
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

/** A place in the source of workerd, with which its own lines begin, and the frames of a stack. */
const CPP_PLACE = /^\S+\.(?:c\+\+|cc|h|capnp):\d+/;

/** Lines below such a one: addresses, and frames with or without a place. */
const STACK =
  /^(?:stack:|\*\*\* |\s|0x|\S+@[0-9a-f]+)|^\S+\.(?:c\+\+|cc|h|capnp):\d+(?::\d+)?: (?:\w+::|returning )/;

/** Words of workerd for what was under way when it was asked to end. */
const CUT_SHORT = /abort|cancel|disconnect|broken|terminat|shutdown|shutting down|destroyed/i;

/**
 * Makes a filter of workerd's lines that lets none through, once it was asked to end, that only say that something was
 * under way: nobody can act on them, and each brings a stack. Whatever else goes wrong then is still told.
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
 * Makes a filter for workerd's own repeated lines, as on a full disk, where each write logs several with their stacks. It
 * passes one of equal lines in ten seconds, with the number of lines left out. Null: the line is left out.
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
    return leftOut === 0 ? line : `${line} (${leftOut} more like this were left out)`;
  };
}

/** A line as it is written to the log of one that is self-hosted. */
export interface LogLine {
  readonly at: Date;
  readonly level: 'info' | 'warn' | 'error';
  /** `serve` or `workerd`, unless the line is an event itself. */
  readonly event: string;
  readonly message: string;
}

/** Writes a line as JSON with its time and level. An event of the Worker has its level already. */
export function jsonLine({ at, level, event, message }: LogLine): string {
  const time = at.toISOString();
  if (isEvent(message)) return `{"at":"${time}",${message.slice(1)}`;
  return JSON.stringify({ at: time, level, event, message });
}

/** Writes a line for whoever sits before a terminal. */
export function textLine({ at, level, message }: LogLine): string {
  return `${at.toISOString()} ${level.padEnd(5)} ${message}`;
}

/** Calls `onLine` for every line of a stream. Nothing but LF ends one; of a very long one the end is cut. */
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
