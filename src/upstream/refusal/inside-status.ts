import type { ErrorFields } from './error-fields.ts';
import { withoutQuoted } from './own-words.ts';
import type { RefusalRow } from './refusal-table.ts';

/**
 * Names of errors, with the status that the same error has outside of a 200. The first match counts. As of 2026-11-27:
 * OpenAI, Anthropic, Google's canonical codes, AWS exceptions, and what gateways make of them.
 */
const NAMES: readonly (readonly [name: RegExp, status: number])[] = [
  // OpenAI. It is not a 404.
  [/^previous_response_/, 400],
  [/too_large|toolarge/, 413],
  [/billing|payment/, 402],
  [/authentication|unauthenticated|unauthorized|api_key/, 401],
  [/permission|forbidden|accessdenied/, 403],
  [/not_found|notfound/, 404],
  [/(?:rate|request)_?limit|too_?many|throttl|resource_?(?:has_been_)?exhausted|quota/, 429],
  [/overload|unavailable|capacity|notready/, 503],
  // Also if the type is one that all errors of a server have.
  [/invalid_(?!response)|validation|content_?(?:policy|filter)|moderation/, 400],
  [
    /server_?error|internal|api_error|timeout|timed_out|deadline|bad_gateway|upstream|provider|modelstream|modelserv/,
    500,
  ],
];

/** The same by message. Read only if the error has no known name. */
const WORDS: readonly (readonly [words: RegExp, status: number])[] = [
  [/\b(?:status|http)(?: code)?:? ?429\b/, 429],
  [/rate ?-?limit|too many (?:concurrent )?requests|quota exceeded|concurrency/, 429],
  [/overloaded|(?:temporarily|service) unavailable|at capacity|capacity temporarily exceeded/, 503],
  [/model (?:is )?busy|currently loading|loading model/, 503],
  [/internal (?:server )?error|upstream error|provider returned error/, 500],
  [/\b(?:status|http)(?: code)?:? ?5\d\d\b|error occurred while processing your request/, 500],
  // Local model servers.
  [/\brunner (?:process )?has (?:terminated|unexpectedly stopped)|failed during generation/, 500],
  [/encountered while running the model|model has crashed|inference (?:exception|error)/, 500],
  [/\bout of memory\b/, 500],
];

/** Unknown errors count as a mistake of the call, so that callers cannot provoke refusals. */
const MISTAKE = 400;

/** Messages about something that the caller named, possibly without quotes. */
const NAMES_A_MISTAKE =
  /\bnot found\b|\bdoes not (?:exist|support)\b|\b(?:un|not )supported\b|\binvalid (?:value|parameter|argument|input|model)\b/;

/** Names of errors caused by the call, and their statuses. */
const CALL_ERROR =
  /invalid|validation|denied|policy|filter|safety|moderat|not_?found|permission|authentic|too_?long|context|^4(?!08|09|29)\d\d$/;

export function isOfCall({ codes }: ErrorFields): boolean {
  return [...codes].some((code) => CALL_ERROR.test(code));
}

/** Returns the status that an error inside a 200 would have had. */
export function statusInside({ codes, text }: ErrorFields, rows: readonly RefusalRow[]): number {
  for (const code of codes) {
    if (/^[45]\d\d$/.test(code)) return Number(code);
  }
  // Anthropic's name for 529.
  if (codes.has('overloaded_error')) return 529;
  // A provider's own code has a row in the table, which takes precedence over the status.
  if (rows.some((row) => row.codes?.some((code) => codes.has(code)))) return 429;
  const names = [...codes].map((code) => code.replaceAll(/[\s-]+/g, '_'));
  const named = NAMES.find(([name]) => names.some((each) => !CODE.test(each) && name.test(each)));
  if (named !== undefined) return named[1];
  if (!names.every((name) => UNNAMED.test(name))) return MISTAKE;
  // Messages contain names that the caller chose, often quoted.
  const own = withoutQuoted(text);
  if (NAMES_A_MISTAKE.test(own)) return MISTAKE;
  if (rows.some((row) => row.text?.test(own))) return 429;
  return WORDS.find(([words]) => words.test(own))?.[1] ?? MISTAKE;
}

/** Characters of source code, which a model may have written in a field `code`. */
const CODE = /[(){};=]/;

/** Types that all errors have, and unknown numbers of a provider. */
const UNNAMED = /^(?:error|failed|failure|unknown|null|none|\d*)$/;
