import type { InstantMs } from '../../core/words/ids.ts';
import type {
  RefusalScope,
  LimitHint,
  RefusalKind,
  UpstreamSignal,
} from '../../core/words/signal.ts';
import { readErrorFields, type ErrorFields } from './error-fields.ts';
import { readAllLimitHints, type HeaderProfile } from './limit-headers.ts';
import { readDelay, usedUpWindows } from './refusal-delay.ts';
import { withoutQuoted, shownWords, refusesEgress, refusesKey } from './refusal-words.ts';
import type { RefusalRow, RefusalRules } from './refusal-table.ts';

/** An upstream's response that may be a refusal. */
export interface UpstreamAnswer {
  readonly rules: RefusalRules;
  /** The limit headers of its upstream. null if none are known, or they are not reliable. */
  readonly headerProfile: HeaderProfile | null;
  readonly status: number;
  readonly headers: Headers;
  /**
   * The decoded text of the body, cut off anywhere after `REFUSAL_BYTES_MAX`. For a 200, the error that was found in
   * it.
   */
  readonly body: string;
  readonly now: InstantMs;
  /**
   * How long its limits hold calls back. Absent to wait until their resets, according to the headers of
   * `headerProfile`.
   */
  readonly waits?: LimitWaits;
  /**
   * Whether the call used the key of a group's member. If that key is not accepted, the member is at fault, and not the
   * caller.
   */
  readonly isOfMember?: boolean;
}

export interface LimitWaits {
  /** The headers that report the limits. null if none are known. */
  readonly profile: HeaderProfile | null;
  readonly waitOf: (hint: LimitHint) => number | null;
}

export interface UpstreamRefusal {
  readonly signal: UpstreamSignal;
  readonly scope: RefusalScope;
  /**
   * Whether waiting cannot help within any caller's patience. Such a refusal is passed on without a request to retry.
   */
  readonly isFinal: boolean;
  /** Whether the API itself refused, which knows the call's key, judged by the form of the response. */
  readonly isOfApi: boolean;
}

/**
 * Longest wait of a rate limit. A longer one indicates a limit of a day or a plan. 10 minutes is the default timeout of
 * the official OpenAI and Anthropic clients. Azure has been seen to report 86,400 seconds as a rate limit.
 */
const RATE_WAIT_MAX_MS = 600_000;

const FINAL_KINDS: ReadonlySet<RefusalKind> = new Set([
  'egress',
  'unauthorized',
  'quota',
  'never_fits',
  'long_window',
]);
const RATE_KINDS: ReadonlySet<RefusalKind> = new Set(['requests', 'tokens', 'ramp', 'unknown']);
/** Kinds of limits that an account counts over all its models. */
const COUNTED_KINDS: ReadonlySet<RefusalKind> = new Set([
  'concurrency',
  'requests',
  'tokens',
  'long_window',
]);

/**
 * Statuses of refusals. Of the other 4xx, only `CLIENT_ERRORS` can be refusals, and only with a known code or message.
 */
const REFUSING_STATUSES = new Set([402, 413, 429, 498]);
const CLIENT_ERRORS = new Set([400, 403, 412]);

const RATE_STATUS = 429;

/** Only the edge refuses with this status. */
const EDGE_CONFLICT = 409;

/** A refusal of every call from the address that this call was sent from. */
const OF_EGRESS: UpstreamRefusal = {
  signal: { kind: 'egress', retryAfterMs: null, slotsMax: null, hints: [] },
  scope: 'upstream',
  isFinal: true,
  isOfApi: false,
};

/** A refusal of a key, whichever call it is for. */
const OF_KEY: UpstreamRefusal = {
  signal: { kind: 'unauthorized', retryAfterMs: null, slotsMax: null, hints: [] },
  scope: 'upstream',
  isFinal: true,
  isOfApi: true,
};

const UNAUTHORIZED = 401;

/** The status of a response that may contain an error. */
const OK = 200;

/** Whether a response with this status may be a refusal, so that its body has to be read. */
export function mayRefuse(status: number, isOfMember = false): boolean {
  if (isOfMember && status === UNAUTHORIZED) return true;
  if (REFUSING_STATUSES.has(status) || CLIENT_ERRORS.has(status)) return true;
  return status >= 500 || status === EDGE_CONFLICT;
}

/**
 * Reads what the upstream's response reports about its limits. Returns null if it is not a refusal: the call succeeded,
 * or the caller made a mistake. Never throws, whatever the upstream wrote.
 */
export function classifyRefusal(answer: UpstreamAnswer): UpstreamRefusal | null {
  const { rules, headerProfile, headers, isOfMember = false } = answer;
  const { quirks } = rules;
  const isInside = answer.status === OK;
  if (!isInside && !mayRefuse(answer.status, isOfMember)) return null;
  const read = readErrorFields(answer.body, headers);
  const fields = { ...read, codes: codesOf(read, rules) };
  const status = isInside ? statusInside(fields, rules.rows) : answer.status;
  if (isInside && !mayRefuse(status, isOfMember)) return null;
  // Checked before the statuses, because some of them have another meaning if the upstream itself sends them.
  if (!isInside && refusesEgress({ ...answer, fields })) return OF_EGRESS;
  const row = rowFor({ status, headers, fields }, rules);
  if (row === null) return isOfMember && refusesKey({ status, fields }) ? OF_KEY : null;
  const hints = readAllLimitHints(headers, headerProfile, answer.now);
  const zone = quirks.resetTimesAre ?? null;
  const { waitHeaders = [] } = quirks;
  const { waits, now } = answer;
  const common = { headers, fields, kind: row.kind, zone, waitHeaders, now };
  const sources =
    waits === undefined
      ? { ...common, hints }
      : { ...common, hints: readAllLimitHints(headers, waits.profile, now), waitOf: waits.waitOf };
  const usedUp =
    RATE_KINDS.has(row.kind) || row.kind === 'long_window' ? usedUpWindows(sources) : null;
  const requestedMs = readDelay(sources, usedUp);
  // Messages with 400 and 403 may repeat what the caller wrote.
  const words =
    fields.message === null || CLIENT_ERRORS.has(status) ? null : shownWords(fields.message);
  const isLong = RATE_KINDS.has(row.kind) && (requestedMs ?? 0) > RATE_WAIT_MAX_MS;
  const kind = isLong ? 'long_window' : row.kind;
  const isOfAccount = quirks.countsByAccount === true && COUNTED_KINDS.has(kind);
  return {
    signal: {
      kind,
      retryAfterMs: kind === 'never_fits' ? null : requestedMs,
      slotsMax: kind === 'concurrency' ? slotsMaxOf(fields.text) : null,
      hints,
      ...(kind === 'overload' && status === RATE_STATUS && { isRate: true }),
      ...(words !== null && { words }),
    },
    scope: isOfAccount ? 'upstream' : (usedUp?.scope ?? row.scope),
    isFinal: FINAL_KINDS.has(kind),
    isOfApi: fields.isOfApi,
  };
}

/** A response as compared with the rows. */
interface RefusedAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly fields: ErrorFields;
}

/** A failure, which needs no further classification. */
const FAILURE: RefusalRow = { kind: 'error', scope: 'model' };

function rowFor(seen: RefusedAnswer, { rows }: RefusalRules): RefusalRow | null {
  const { status } = seen;
  if (status === EDGE_CONFLICT) return null;
  if (status >= 500 && status !== 503 && status !== 529) return FAILURE;
  return rows.find((row) => isFor(row, seen) && holds(row, seen)) ?? null;
}

function isFor(row: RefusalRow, { status, fields }: RefusedAnswer): boolean {
  if (row.unlessQuotaFailure === true && namesQuota(fields)) return false;
  return !CLIENT_ERRORS.has(status) || row.onClientError === true;
}

function holds(row: RefusalRow, seen: RefusedAnswer): boolean {
  const { status, headers, fields } = seen;
  if (row.codes?.some((code) => fields.codes.has(code)) === true) return true;
  if (row.statuses?.includes(status) === true || matchesMessage(row, seen)) return true;
  if (row.quotaId !== undefined && fields.quotaIds.some((id) => row.quotaId?.test(id))) return true;
  return row.zeroHeader !== undefined && headers.get(row.zeroHeader) === '0';
}

function matchesMessage(
  { kind, text, message }: RefusalRow,
  { status, fields }: RefusedAnswer,
): boolean {
  if (message !== undefined && fields.messages.some(message)) return true;
  if (text === undefined || CLIENT_ERRORS.has(status)) return false;
  // A quota refusal ejects a member, so quoted names that the caller chose must not count.
  return text.test(kind === 'quota' ? withoutQuoted(fields.text) : fields.text);
}

function namesQuota({ quotaIds, text }: ErrorFields): boolean {
  return quotaIds.length > 0 || text.includes('quota exceeded for metric');
}

function codesOf({ codes, text }: ErrorFields, { quirks }: RefusalRules): ReadonlySet<string> {
  const code = quirks.codesFromMessage?.exec(text)?.[1];
  return code === undefined ? codes : new Set([...codes, code]);
}

/** Reads the number in a message such as Moonshot's `max organization concurrency: 1`. */
function slotsMaxOf(text: string): number | null {
  const slots = Number(/concurrency: ?(\d{1,6})/.exec(text)?.[1] ?? 0);
  return slots > 0 ? slots : null;
}

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
