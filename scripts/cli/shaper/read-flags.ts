import { parseArgsStringToArgv } from 'string-argv';
import type { FieldError } from '../../../src/config/field-error.ts';

/** Flags of one upstream, by name. A repeated flag has several values. */
export type Flags = ReadonlyMap<string, readonly string[]>;

/** The flags of one upstream. The name is null on a command line without sections. */
export interface UpstreamFlags {
  readonly name: string | null;
  readonly flags: Flags;
}

/** Flags without a value. */
const SWITCHES = new Set([
  'tui',
  'version',
  'h',
  'help',
  'adaptive-headroom',
  'circuit-breaker',
  'limit-all',
  'opencode',
  'retry-skip-429',
  'upstream-disable-keep-alives',
  'transcode-responses-chat',
  'transcode-messages-chat',
  'transcode-messages-responses',
  'transcode-strict-defaults',
  'transcode-continuity',
]);

/** Name of the program. Flags before it belong to other programs in the same script. */
const PROGRAM = /(?:^|[/\\])ai-concurrency-shaper(?:\.exe)?$/;

const FLAG = /^--?([a-z][a-z0-9-]*)(?:=(.*))?$/s;

/**
 * Reads a command line, a script or the `command` of a container into the sections of its upstreams. The server's
 * flags, which precede the first `--provider`, become part of each section.
 */
export function readSections(text: string): UpstreamFlags[] {
  const words = wordsOf(text);
  const starts = words.flatMap((word, at) => (isSectionStart(word) ? [at] : []));
  const [first] = starts;
  if (first === undefined) return [{ name: null, flags: readFlags(words) }];
  const server = words.slice(0, first);
  return starts.map((start, index) => ({
    name: FLAG.exec(words[start] ?? '')?.[2] ?? null,
    flags: readFlags([...server, ...words.slice(start + 1, starts[index + 1])]),
  }));
}

function isSectionStart(word: string): boolean {
  return FLAG.exec(word)?.[1] === 'provider';
}

/** Extracts the words of the program's command line from a text. */
function wordsOf(text: string): string[] {
  const script = text
    .replace(/^\s*#.*$/gm, '')
    .replace(/\\\r?\n/g, ' ')
    // In a container's file, the words are a list in quotes with commas, or one item per line with a dash.
    .replace(/(["'])\s*,\s*(?=["'])/g, '$1 ')
    .replace(/\[\s*(?=["'])/g, ' ')
    .replace(/(?<=["'])\s*\]/g, ' ')
    .replace(/^\s*-\s+/gm, ' ');
  const all = parseArgsStringToArgv(script);
  return all.slice(all.findLastIndex((word) => PROGRAM.test(word)) + 1);
}

/** Reads flags in Go's syntax: one or two dashes, and the value after a space or an equals sign. */
function readFlags(words: readonly string[]): Flags {
  const flags = new Map<string, string[]>();
  for (let at = 0; at < words.length; at += 1) {
    const [, name, inline] = FLAG.exec(words[at] ?? '') ?? [];
    if (name === undefined) continue;
    const isAlone = SWITCHES.has(name) || inline !== undefined;
    if (!isAlone) at += 1;
    flags.set(name, [...(flags.get(name) ?? []), inline ?? (isAlone ? 'true' : (words[at] ?? ''))]);
  }
  return flags;
}

/** Returns the last value of a flag, which takes effect. */
export function lastOf(flags: Flags, name: string): string | undefined {
  return flags.get(name)?.at(-1);
}

/** Whether a switch is on, in Go's syntax. null if the switch is absent. */
export function switchOf(flags: Flags, name: string): boolean | null {
  const written = lastOf(flags, name);
  return written === undefined ? null : !/^(?:false|f|0)$/i.test(written);
}

const COUNTS = [
  'concurrency',
  'global-concurrency',
  'queue-depth',
  'retry',
  'retry-max-body-mb',
  'cb-threshold',
];

const DURATIONS = [
  'queue-timeout',
  'queue-comments',
  'release-cooldown',
  'cancel-cooldown',
  'failure-hold',
  'cb-penalty',
  'cb-window',
  'cb-open-timeout',
  'cb-max-open-timeout',
];

/** Lists the flags with invalid values. They have no effect. */
export function unreadableFlags(flags: Flags): FieldError[] {
  const check = (name: string, pattern: RegExp, expected: string): FieldError[] => {
    const written = lastOf(flags, name);
    if (written === undefined || pattern.test(written)) return [];
    return [{ path: `-${name} ${written.slice(0, 40)}`, message: `expected ${expected}` }];
  };
  return [
    ...COUNTS.flatMap((name) => check(name, name === 'retry' ? /^-?\d+$/ : /^\d+$/, 'a count')),
    ...DURATIONS.flatMap((name) => check(name, DURATION, 'a duration, as in 1m30s')),
  ];
}

/** Reads a count, lowered to the maximum of a group. null if the flag is absent or not a count. */
export function countOf(flags: Flags, name: string, max: number, notes: string[]): number | null {
  const written = lastOf(flags, name);
  if (written === undefined) return null;
  if (!/^\d+$/.test(written)) return null;
  return atMost(Number(written), max, `-${name} ${written}`, notes);
}

const UNITS_MS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
  ms: 1,
  us: 0.001,
  µs: 0.001,
  ns: 0.000_001,
};

const DURATION = /^(?:0|(?:\d+(?:\.\d*)?(?:ms|us|µs|ns|h|m|s))+)$/;

/**
 * Reads a duration in Go's syntax, as in `1m30s`, lowered to the maximum of a group. null if the flag is absent or not
 * a duration.
 */
export function msOf(flags: Flags, name: string, maxMs: number, notes: string[]): number | null {
  const written = lastOf(flags, name);
  if (written === undefined || !DURATION.test(written)) return null;
  const parts = [...written.matchAll(/([\d.]+)([a-zµ]+)/g)];
  const ms = parts.reduce(
    (sum, [, amount, unit = '']) => sum + Number(amount) * (UNITS_MS[unit] ?? 0),
    0,
  );
  // Zero has a different meaning from a small value.
  return atMost(ms === 0 ? 0 : Math.max(1, Math.round(ms)), maxMs, `-${name} ${written}`, notes);
}

export function atMost(value: number, max: number, flag: string, notes: string[]): number {
  if (value <= max) return value;
  notes.push(`${flag}: ${max} is the maximum of a group and is used instead.`);
  return max;
}
