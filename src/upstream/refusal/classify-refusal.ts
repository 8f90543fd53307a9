import type { InstantMs } from '../../core/words/ids.ts';
import type { RefusalKind, UpstreamSignal } from '../../core/words/signal.ts';
import { readErrorFields } from './error-fields.ts';
import type { ErrorFields } from './error-fields.ts';
import { headerProfileOf } from './header-profiles.ts';
import type { HeaderProfile } from './header-profiles.ts';
import { readLimitHints } from './limit-headers.ts';
import { providerOf } from '../../providers/provider-of.ts';
import { readDelay } from './refusal-delay.ts';
import { COUNTS_BY_ACCOUNT, REFUSAL_TABLE, REFUSES_INSIDE_200 } from './refusal-table.ts';
import type { RefusalRow, RefusalScope } from './refusal-table.ts';

/** An upstream's answer that may be a refusal. */
export interface UpstreamAnswer {
  readonly upstreamId: string;
  /** Host of the upstream's base URL, with a port that is not the scheme's own. */
  readonly host: string;
  readonly status: number;
  readonly headers: Headers;
  /** The decoded text of the body, at most `REFUSAL_BYTES_MAX` of it; it may end anywhere. */
  readonly body: string;
  readonly now: InstantMs;
  /** @default what is known of the upstream */
  readonly headerProfile?: HeaderProfile | null;
}

/** What a refusal means. */
export interface Refusal {
  readonly signal: UpstreamSignal;
  readonly scope: RefusalScope;
  /** Waiting does not help within any caller's patience: it passes through and asks for no retry. */
  readonly isFinal: boolean;
}

/**
 * A rate that asks for a longer wait than this is in truth a limit of a day or a plan: 10 minutes is
 * the default time-out of the official OpenAI and Anthropic clients. Azure was seen to call 86,400
 * seconds a rate limit.
 */
const RATE_WAIT_MAX_MS = 600_000;

const FINAL_KINDS: ReadonlySet<RefusalKind> = new Set(['quota', 'never_fits', 'long_window']);
const RATE_KINDS: ReadonlySet<RefusalKind> = new Set(['requests', 'tokens', 'ramp', 'unknown']);
/** What an account that counts over all its models counts. */
const COUNTED_KINDS: ReadonlySet<RefusalKind> = new Set([
  'concurrency',
  'requests',
  'tokens',
  'long_window',
]);

/** Statuses that refuse; of other 4xx only those two, and only with a code that says so. */
const REFUSING_STATUSES = new Set([402, 413, 429, 498]);
const CLIENT_ERRORS = new Set([400, 403]);

/** Whether a 200 of this upstream with a small JSON body may be a refusal. */
export function mayRefuseInside200(upstreamId: string, host: string): boolean {
  return REFUSES_INSIDE_200.has(providerOf(upstreamId, host));
}

/** Whether an answer is worth its body: without one of these statuses it is no refusal. */
export function mayRefuse(status: number): boolean {
  return status >= 500 || REFUSING_STATUSES.has(status) || CLIENT_ERRORS.has(status);
}

/**
 * What the upstream's answer says about its limits, or null where it is no refusal: served, or the
 * caller's own mistake. Never throws, whatever the upstream wrote.
 */
export function classifyRefusal(answer: UpstreamAnswer): Refusal | null {
  const { upstreamId, host, status, headers } = answer;
  const provider = providerOf(upstreamId, host);
  if (!mayRefuse(status) && !(status === 200 && REFUSES_INSIDE_200.has(provider))) return null;
  const fields = readErrorFields(answer.body, headers);
  const row = rowFor({ provider, status, headers, fields, codes: codesOf(fields, provider) });
  if (row === null) return null;
  const { headerProfile = headerProfileOf(upstreamId, host) } = answer;
  const hints = readLimitHints(headers, headerProfile, answer.now);
  const isChinaTime = provider === 'zai' || provider === 'zhipu';
  const asked = readDelay({ headers, fields, hints, kind: row.kind, isChinaTime, now: answer.now });
  const isLong = RATE_KINDS.has(row.kind) && (asked ?? 0) > RATE_WAIT_MAX_MS;
  const kind = isLong ? 'long_window' : row.kind;
  return {
    signal: {
      kind,
      retryAfterMs: kind === 'never_fits' ? null : asked,
      slotsMax: kind === 'concurrency' ? slotsMaxOf(fields.text) : null,
      hints,
    },
    scope: COUNTS_BY_ACCOUNT.has(provider) && COUNTED_KINDS.has(kind) ? 'upstream' : row.scope,
    isFinal: FINAL_KINDS.has(kind),
  };
}

/** What rows are compared with. */
interface Seen {
  readonly provider: string;
  readonly status: number;
  readonly headers: Headers;
  readonly fields: ErrorFields;
  readonly codes: ReadonlySet<string>;
}

/** A failure, of which nothing more needs to be known. */
const FAILURE: RefusalRow = { kind: 'error', scope: 'model' };

function rowFor(seen: Seen): RefusalRow | null {
  const { status } = seen;
  if (status >= 500 && status !== 503 && status !== 529) return FAILURE;
  return REFUSAL_TABLE.find((row) => isFor(row, seen) && holds(row, seen)) ?? null;
}

function isFor(row: RefusalRow, { provider, status, fields }: Seen): boolean {
  if (row.only !== undefined && !row.only.includes(provider)) return false;
  if (row.except?.includes(provider) === true) return false;
  if (row.unlessQuotaFailure === true && namesQuota(fields)) return false;
  if (CLIENT_ERRORS.has(status)) return row.onClientError === true;
  return status !== 200 || row.only !== undefined;
}

function holds(row: RefusalRow, { status, headers, fields, codes }: Seen): boolean {
  if (row.codes?.some((code) => codes.has(code)) === true) return true;
  // The text of a 200 is the model's.
  if (status === 200) return false;
  if (row.statuses?.includes(status) === true || row.text?.test(fields.text) === true) return true;
  if (row.quotaId !== undefined && fields.quotaIds.some((id) => row.quotaId?.test(id))) return true;
  return row.zeroHeader !== undefined && headers.get(row.zeroHeader) === '0';
}

function namesQuota({ quotaIds, text }: ErrorFields): boolean {
  return quotaIds.length > 0 || text.includes('quota exceeded for metric');
}

/** On its OpenAI- and Anthropic-shaped routes MiniMax tells its code only at the end of the message. */
function codesOf({ codes, text }: ErrorFields, provider: string): ReadonlySet<string> {
  if (!provider.startsWith('minimax')) return codes;
  const code = /\((\d{4})\)$/m.exec(text)?.[1];
  return code === undefined ? codes : new Set([...codes, code]);
}

/** Moonshot names the number: `max organization concurrency: 1`. */
function slotsMaxOf(text: string): number | null {
  const slots = Number(/concurrency: ?(\d{1,6})/.exec(text)?.[1] ?? 0);
  return slots > 0 ? slots : null;
}
