import * as z from 'zod';
import { LANES, type Lane } from '../../core/words/ticket.ts';

/** The headers of a request that Headgate reads, and the timeouts of known clients. */

export interface CallerHeaders {
  readonly upstream: string | null;
  readonly model: string | null;
  readonly lane: Lane | null;
  readonly weight: number;
  readonly agent: string | null;
  /** Start of the agent run, in epoch milliseconds. null means the time at which the group first saw it. */
  readonly agentStartedAt: number | null;
  /** Lease ids of the parent call. */
  readonly parents: readonly string[];
  /** Maximum wait in milliseconds. 0 means no wait, and null means as long as the group allows. */
  readonly maxWaitMs: number | null;
  /** The wait that the caller chose for Headgate, without the time-outs of its client. */
  readonly chosenWaitMs: number | null;
  readonly wantsKeepalive: boolean;
}

/**
 * Headers in which agents already name their run or session, the most specific first: sub-agents of Claude Code, its
 * sessions, Codex, and headers that several agents share.
 */
const AGENT_HEADERS = [
  'headgate-agent',
  'x-claude-code-agent-id',
  'x-claude-code-session-id',
  'session-id',
  'session_id',
  'thread-id',
  'x-session-id',
  'x-session-affinity',
];

/**
 * Headers that name the user or session of a call without an agent, users first, because a user may open many sessions.
 * They affect only the scheduling order, so they are read only once the call must wait.
 */
export const SESSION_HEADERS = [
  'x-user-id',
  'x-litellm-end-user-id',
  'x-litellm-customer-id',
  'x-openwebui-user-id',
  'helicone-user-id',
  'x-litellm-session-id',
  'helicone-session-id',
  'x-opencode-session',
  'x-openwebui-chat-id',
  'x-grok-conv-id',
  'x-conversation-id',
  'conversation-id',
  'conversation_id',
];

const AGENT_LENGTH_MAX = 200;
const PARENTS_MAX = 4;

/** Maximum length of a parent's id. Real ids are half as long, so a longer one names no lease. */
const PARENT_LENGTH_MAX = 100;

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000 } as const;

const maxWait = z
  .string()
  .trim()
  .regex(/^\d{1,9}(\.\d{1,3})?(ms|s|m)?$/, 'expected a duration such as 30s, 500ms, 2m or 0')
  .transform((text) => {
    const unit = /(ms|s|m)$/.exec(text)?.[0] as keyof typeof UNIT_MS | undefined;
    return Math.round(parseFloat(text) * UNIT_MS[unit ?? 's']);
  });

const instant = z
  .string()
  .trim()
  .transform((text) => (/^\d{10,16}$/.test(text) ? Number(text) : Date.parse(text)))
  .refine((at) => Number.isFinite(at), 'expected epoch milliseconds or an RFC 3339 time');

const ownHeaders = z.object({
  'headgate-max-wait': maxWait.nullable(),
  'headgate-lane': z
    .string()
    .trim()
    .toLowerCase()
    .pipe(z.enum(LANES, `expected one of ${LANES.join(', ')}`))
    .nullable(),
  'headgate-weight': z
    .string()
    .trim()
    .regex(/^[1-9]\d{0,3}$/, 'expected a whole number of at least 1')
    .transform(Number)
    .nullable(),
  'headgate-agent-started-at': instant.nullable(),
  'headgate-keepalive': z.literal('sse', 'expected sse').nullable(),
});

type ParsedHeaders = z.output<typeof ownHeaders>;

const NOTHING: ParsedHeaders = {
  'headgate-max-wait': null,
  'headgate-lane': null,
  'headgate-weight': null,
  'headgate-agent-started-at': null,
  'headgate-keepalive': null,
};

const NAMES = Object.keys(NOTHING);

type HeadersRead =
  | { readonly ok: true; readonly value: CallerHeaders }
  | { readonly ok: false; readonly message: string };

/** Parses the caller's headers. The error for an invalid header names it. */
export function readCallerHeaders(headers: Headers): HeadersRead {
  const own = readOwn(headers);
  if ('message' in own) return { ok: false, message: own.message };
  const chosenWaitMs = own['headgate-max-wait'];
  const value: CallerHeaders = {
    upstream: headers.get('headgate-upstream'),
    model: headers.get('headgate-model'),
    lane: own['headgate-lane'],
    weight: own['headgate-weight'] ?? 1,
    agent: agentOf(headers),
    agentStartedAt: own['headgate-agent-started-at'],
    parents: (headers.get('headgate-parent') ?? '')
      .split(',')
      .map((lease) => lease.trim())
      .filter((lease) => lease !== '' && lease.length <= PARENT_LENGTH_MAX)
      .slice(0, PARENTS_MAX),
    maxWaitMs: shorterWait(chosenWaitMs, clientWaitMs(headers)),
    chosenWaitMs,
    wantsKeepalive: own['headgate-keepalive'] !== null,
  };
  return { ok: true, value };
}

/** Most calls carry none of these headers, so nothing is parsed for them. */
function readOwn(headers: Headers): ParsedHeaders | { readonly message: string } {
  if (!NAMES.some((name) => headers.has(name))) return NOTHING;
  const parsed = ownHeaders.safeParse(
    Object.fromEntries(NAMES.map((name) => [name, headers.get(name)])),
  );
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  return { message: `${String(issue?.path[0])}: ${issue?.message ?? 'invalid value'}.` };
}

function agentOf(headers: Headers): string | null {
  for (const name of AGENT_HEADERS) {
    const value = headers.get(name)?.trim() ?? '';
    if (value !== '') return value.slice(0, AGENT_LENGTH_MAX);
  }
  return null;
}

/** The shorter of two waits. null means no limit. */
export function shorterWait(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

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
function clientWaitMs(headers: Headers): number | null {
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
