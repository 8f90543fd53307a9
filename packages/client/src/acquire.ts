import { HeadgateError } from './errors.ts';
import type { Gate } from './gate.ts';
import { granted, ticketIn } from './granted.ts';
import { RenewedLease } from './lease.ts';
import { requestBody, type LeaseRequest } from './request.ts';
import type { ServerAnswer } from './server.ts';
import { backOff, jittered, orAborted, sleep, steadyNow } from './waits.ts';

/** Headgate answers a waiting request with 202 after 25 s at the latest. The rest is a margin for the network. */
const SLICE_TIMEOUT_MS = 40_000;

/** How long an acquisition without `maxWaitMs` is retried while Headgate is unreachable. */
const PATIENCE_MS = 10_000;

/** The same with `onUnavailable: 'pass'`, after which the work runs without a lease. */
const PATIENCE_BEFORE_PASSING_MS = 2_000;

/** Minimum time between two requests of one wait. */
const PACE_MS = 100;

/** A 202 that arrives sooner does not end a full wait. After more than one of them in a row, the pauses grow. */
const EARLY_MS = 500;
const EARLY_PAUSE_MAX_MS = 2_000;

/** Spreads clients that received the same retry time, in milliseconds. */
const RETRY_SPREAD_MS = 1_000;

/** Attempts to receive the response to an aborted acquisition, in order to release its lease. */
const RELEASE_ATTEMPTS_MAX = 5;

/** Reasons that report a fault of Headgate itself, not a decision about the request. */
const OWN_FAULTS = new Set(['limiter_unavailable', 'limiter_overloaded', 'internal']);

/** One wait for a lease, which may take several requests. */
interface LeaseWait {
  readonly request: LeaseRequest;
  /** End of the wait on the monotonic clock. Infinity if the request sets no `maxWaitMs`. */
  readonly until: number;
  /** Maximum wait from the first request on, the same in all requests. Infinity: as long as the group allows. */
  maxWaitMs: number;
  /** Identifies the wait from the second request on. */
  ticket: string | undefined;
  /** Idempotency key of the first request, so that a retry receives the response that was lost. */
  key: string;
  /** Time of the first failure since the last response. null if the last request was answered. */
  silentSince: number | null;
  failures: number;
  /** Consecutive early responses that requested an immediate retry. */
  early: number;
}

/** Waits for a lease. The lease is a bypass without slots if Headgate is unreachable and `onUnavailable` is `pass`. */
export async function acquire(gate: Gate, request: LeaseRequest): Promise<RenewedLease> {
  const { signal, maxWaitMs, ticket } = request;
  signal?.throwIfAborted();
  const until = steadyNow() + (maxWaitMs ?? Infinity);
  // A request that does not wait needs no seat.
  const leave = maxWaitMs === 0 ? () => {} : await gate.seatsFor(request).take(request);
  const wait: LeaseWait = {
    request,
    until,
    ticket,
    // Headgate measures the wait of an earlier ticket from the first request of that ticket.
    maxWaitMs: ticket === undefined ? leftUntil(until) : (maxWaitMs ?? Infinity),
    key: newKey(),
    silentSince: null,
    failures: 0,
    early: 0,
  };
  try {
    const answer = await requestUntilGranted(gate, wait);
    return new RenewedLease(gate, answer && granted(answer), signal);
  } catch (error) {
    if (wait.ticket !== undefined) leaveQueue(gate, wait.ticket);
    throw error;
  } finally {
    leave();
  }
}

/** Sends requests until a lease is granted. null means that the work runs without a lease. */
async function requestUntilGranted(gate: Gate, wait: LeaseWait): Promise<ServerAnswer | null> {
  const { signal } = wait.request;
  for (;;) {
    signal?.throwIfAborted();
    if (gate.passes()) return null;
    const answer = await requestOnce(gate, wait).catch((error: unknown) =>
      recover(gate, wait, error),
    );
    if (answer === 'pass') return null;
    if (answer !== 'retry') {
      if (answer.status === 201) return answer;
      wait.ticket = ticketIn(answer);
      await sleep(pauseAfter(answer, wait), signal);
    }
  }
}

/** Sends one request. If the caller aborts first, a lease that is granted later is released. */
async function requestOnce(gate: Gate, wait: LeaseWait): Promise<ServerAnswer> {
  const { signal } = wait.request;
  const response = post(gate, wait);
  try {
    const answer = await orAborted(response, signal);
    wait.silentSince = null;
    wait.failures = 0;
    gate.answered();
    return answer;
  } catch (error) {
    if (signal?.aborted) releaseUnwanted(gate, wait, response).catch(ignore);
    throw error;
  }
}

/** Sends one request of a wait. It is idempotent: a retry with the same key or ticket returns the same response. */
function post(
  gate: Gate,
  { request, ticket, key, maxWaitMs, until }: LeaseWait,
): Promise<ServerAnswer> {
  return gate.server.exchange({
    method: 'POST',
    path: '/leases',
    body: requestBody({ ...request, maxWaitMs, ticket }),
    ...(ticket === undefined && { idempotencyKey: key }),
    timeoutMs: Math.min(SLICE_TIMEOUT_MS, leftUntil(until) + 10_000),
  });
}

/**
 * Receives the response to an aborted acquisition and releases its lease or leaves the queue. Lost responses are
 * retried.
 */
async function releaseUnwanted(
  gate: Gate,
  wait: LeaseWait,
  first: Promise<ServerAnswer>,
): Promise<void> {
  let response = first;
  for (let attempts = 1; ; attempts += 1) {
    try {
      const answer = await response;
      if (answer.status !== 201) return leaveQueue(gate, ticketIn(answer));
      return await new RenewedLease(gate, granted(answer), undefined).release('cancelled');
    } catch (error) {
      const isLost = error instanceof HeadgateError && error.reason === 'unreachable';
      if (!isLost || attempts === RELEASE_ATTEMPTS_MAX) return;
      await sleep(backOff(attempts));
      response = post(gate, wait);
    }
  }
}

const leftUntil = (until: number): number => Math.max(0, until - steadyNow());

/** Returns the pause before the next request of a wait. A request that is 5 s late loses its place in the queue. */
function pauseAfter({ body, sentAt }: ServerAnswer, wait: LeaseWait): number {
  const reported = Number(body['retry_after_ms'] ?? 0);
  if (reported > 0) return reported + Math.random() * RETRY_SPREAD_MS;
  const tookMs = steadyNow() - sentAt;
  wait.early = tookMs < EARLY_MS ? wait.early + 1 : 0;
  if (wait.early > 1) return Math.min(backOff(wait.early), EARLY_PAUSE_MAX_MS);
  return Math.max(0, PACE_MS - tookMs);
}

/** Waits before the next request after an error, or rethrows the error if a retry is not allowed. */
async function recover(gate: Gate, wait: LeaseWait, error: unknown): Promise<'retry' | 'pass'> {
  const { signal, maxWaitMs } = wait.request;
  if (signal?.aborted || !(error instanceof HeadgateError)) throw error;
  wait.failures += 1;
  const now = steadyNow();
  if (error.reason === 'unreachable' || OWN_FAULTS.has(error.reason)) {
    wait.silentSince ??= now;
    const pause = Math.max(backOff(wait.failures), error.retryAfterMs ?? 0);
    const mayPass = gate.onUnavailable === 'pass' && error.reason === 'unreachable';
    if (now + pause > giveUpAt(wait, wait.silentSince, mayPass)) {
      if (!mayPass) throw error;
      gate.passFromNow();
      return 'pass';
    }
    // The retry uses the same ticket or key, so it receives the response that was lost.
    await sleep(pause, signal);
    return 'retry';
  }
  // A rejection by the group is final, unless the caller set `maxWaitMs`.
  const isRetryable = maxWaitMs !== undefined && isTemporary(error);
  const pause = jittered(error.retryAfterMs ?? 1_000);
  if (!isRetryable || now + pause > wait.until) throw error;
  await sleep(pause, signal);
  wait.ticket = undefined;
  wait.key = newKey();
  wait.maxWaitMs = leftUntil(wait.until);
  return 'retry';
}

/** Returns the time at which a wait without responses ends. */
function giveUpAt({ request, until }: LeaseWait, silentSince: number, mayPass: boolean): number {
  if (mayPass) return Math.min(until, silentSince + PATIENCE_BEFORE_PASSING_MS);
  return request.maxWaitMs === undefined ? silentSince + PATIENCE_MS : until;
}

/** Whether the same request may succeed later, because only slots or capacity are missing. */
export function isTemporary({ status, reason }: HeadgateError): boolean {
  if (reason === 'queue_timeout') return true;
  return (status === 429 || status === 503) && !OWN_FAULTS.has(reason);
}

/** Leaves the queue. If the request is lost, the ticket expires. */
function leaveQueue(gate: Gate, ticket: string): void {
  const path = `/tickets/${encodeURIComponent(ticket)}`;
  gate.server.exchange({ method: 'DELETE', path }).catch(ignore);
}

function ignore(): void {}

/** Creates a unique key. `randomUUID` does not exist on pages without TLS. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
