/**
 * Time-outs that clients send in headers. `docs/client-headers.md` lists each client, its header, its unit and its
 * source. A value that cannot be parsed counts as absent, such as `NOT_GIVEN`, `None`, `inf` or `-1`.
 */

/** What ends a time-out: the next bytes of the response, or its last byte. */
type EndsWith = 'bytes' | 'answer';

interface TimeoutHeader {
  readonly name: string;
  /** Returns the time-out in milliseconds, or null if the text is none. */
  readonly read: (text: string) => number | null;
  readonly endsWith: (headers: Headers) => EndsWith;
}

/** .NET writes the decimal separator of its culture. */
const DECIMAL = /^\d{1,20}(?:[.,]\d{1,20})?$/;
const GRPC = /^(\d{1,8})([HMSmun])$/;
const GRPC_UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/** Many SDKs truncate to seconds. Their 0 means any time-out below a second, not "do not wait". */
const BELOW_SECOND_MS = 500;

/** Google's SDKs round up to seconds. */
const ROUNDED_UP_MS = 1_000;

/** Time that Headgate's response needs to reach its client: a tenth of the time-out, within these bounds. */
const MARGIN_MS_MIN = 250;
const MARGIN_MS_MAX = 5_000;

const WAIT_MS_MAX = 86_400_000;

/** Languages whose `x-stainless-timeout` ends with the first bytes. In the others, it ends with the whole response. */
const UNTIL_BYTES = /^(?:js|javascript|csharp|python)$/i;

const HEADERS: readonly TimeoutHeader[] = [
  {
    name: 'x-stainless-timeout',
    read: seconds,
    endsWith: (headers) =>
      UNTIL_BYTES.test(headers.get('x-stainless-lang') ?? '') ? 'bytes' : 'answer',
  },
  { name: 'x-stainless-read-timeout', read: seconds, endsWith: () => 'bytes' },
  { name: 'x-server-timeout', read: roundedUp, endsWith: () => 'answer' },
  {
    name: 'x-envoy-expected-rq-timeout-ms',
    read: (text) => decimal(text) || null,
    endsWith: () => 'answer',
  },
  { name: 'grpc-timeout', read: grpc, endsWith: () => 'answer' },
];

/** Maximum wait in milliseconds after which the client still receives the response in time. null means no limit. */
export function clientWaitMs(headers: Headers): number | null {
  return shortest(headers, () => true);
}

/**
 * The same for a client that receives keep-alive comments after at most `silentMs`. They satisfy longer time-outs that
 * end with the next bytes.
 */
export function keptAliveWaitMs(headers: Headers, silentMs: number): number | null {
  return shortest(
    headers,
    (waitMs, { endsWith }) => waitMs <= silentMs || endsWith(headers) === 'answer',
  );
}

function shortest(
  headers: Headers,
  counts: (waitMs: number, header: TimeoutHeader) => boolean,
): number | null {
  let least: number | null = null;
  for (const header of HEADERS) {
    const text = headers.get(header.name);
    const timeoutMs = text === null ? null : header.read(text.trim());
    if (timeoutMs === null) continue;
    const waitMs = withoutMargin(timeoutMs);
    if (waitMs < (least ?? Infinity) && counts(waitMs, header)) least = waitMs;
  }
  return least;
}

/** At least half of the time-out is left, and never 0, which would mean "do not wait". */
function withoutMargin(timeoutMs: number): number {
  const marginMs = Math.min(Math.max(timeoutMs / 10, MARGIN_MS_MIN), MARGIN_MS_MAX);
  const waitMs = Math.max(timeoutMs - marginMs, timeoutMs / 2);
  return Math.min(Math.max(Math.round(waitMs), 1), WAIT_MS_MAX);
}

function seconds(text: string): number | null {
  const value = decimal(text);
  return value === null ? null : value * 1_000 || BELOW_SECOND_MS;
}

function roundedUp(text: string): number | null {
  const value = decimal(text);
  if (value === null || value === 0) return null;
  return Math.max(value * 1_000 - ROUNDED_UP_MS, value * 500);
}

function grpc(text: string): number | null {
  const [, digits = '', unit = ''] = GRPC.exec(text) ?? [];
  const unitMs = GRPC_UNIT_MS[unit];
  return unitMs === undefined ? null : Number(digits) * unitMs || null;
}

function decimal(text: string): number | null {
  return DECIMAL.test(text) ? Number(text.replace(',', '.')) : null;
}
