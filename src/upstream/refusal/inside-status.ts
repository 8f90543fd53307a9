import type { ErrorFields } from './error-fields.ts';
import { withoutQuoted } from './own-words.ts';
import type { RefusalRow } from './refusal-table.ts';

/**
 * Names of errors, by the status with which the same error would come by itself. The first match counts. As of 2026-11-27:
 * OpenAI's, Anthropic's, Google's canonical codes, AWS's exceptions, and what gateways make of them.
 */
const NAMES: readonly (readonly [name: RegExp, status: number])[] = [
  // OpenAI's, which is no 404.
  [/^previous_response_/, 400],
  [/too_large|toolarge/, 413],
  [/billing|payment/, 402],
  [/authentication|unauthenticated|unauthorized|api_key/, 401],
  [/permission|forbidden|accessdenied/, 403],
  [/not_found|notfound/, 404],
  [/rate_?limit|too_?many|throttl|resource_?(?:has_been_)?exhausted|quota/, 429],
  [/overload|unavailable|capacity|notready/, 503],
  [
    /server_?error|internal|api_error|timeout|timed_out|deadline|bad_gateway|upstream|provider|modelstream/,
    500,
  ],
];

/** The same, in words. Read only where an error has no name that is known. */
const WORDS: readonly (readonly [words: RegExp, status: number])[] = [
  [/rate ?-?limit|too many (?:concurrent )?requests|quota exceeded|concurrency/, 429],
  [/overloaded|(?:temporarily|service) unavailable|at capacity/, 503],
  [/internal (?:server )?error|upstream error|provider returned error/, 500],
];

/** An error that says nothing more is taken for a mistake of the call, so no caller can speak for the upstream. */
const MISTAKE = 400;

/** Names of errors that the call itself has caused, and statuses. */
const OF_THE_CALL =
  /invalid|validation|denied|policy|filter|safety|moderat|not_?found|permission|authentic|too_?long|context|^4(?!08|09|29)\d\d$/;

/** Whether an error is about the call, so that it says nothing of the upstream. */
export function isOfCall({ codes }: ErrorFields): boolean {
  return [...codes].some((code) => OF_THE_CALL.test(code));
}

/** Finds the status that an error inside a 200 would have had. */
export function statusInside({ codes, text }: ErrorFields, rows: readonly RefusalRow[]): number {
  for (const code of codes) {
    if (/^[45]\d\d$/.test(code)) return Number(code);
  }
  // The name that Anthropic has for its 529.
  if (codes.has('overloaded_error')) return 529;
  // A provider's own code has its row, which no status may keep from being read.
  if (rows.some((row) => row.codes?.some((code) => codes.has(code)))) return 429;
  const names = [...codes].map((code) => code.replaceAll(/[\s-]+/g, '_'));
  const named = NAMES.find(([name]) => names.some((each) => name.test(each)));
  if (named !== undefined) return named[1];
  if (!names.every((name) => UNNAMED.test(name))) return MISTAKE;
  // Names that the caller gives come back in messages, in quotes.
  const own = withoutQuoted(text);
  if (rows.some((row) => row.text?.test(own))) return 429;
  return WORDS.find(([words]) => words.test(own))?.[1] ?? MISTAKE;
}

/** Types that every error has, and numbers of a provider whose numbers are not known here. */
const UNNAMED = /^(?:error|failed|unknown|null|none|\d*)$/;
