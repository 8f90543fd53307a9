import { HeadgateError } from './errors.ts';
import type { Gate } from './gate.ts';
import { granted, ticketIn } from './granted.ts';
import { RenewedLease } from './lease.ts';
import { requestBody, type LeaseRequest } from './request.ts';
import type { ServerAnswer } from './server.ts';
import { backOff, jittered, orAborted, sleep, steadyNow } from './waits.ts';

/** Headgate lets a request wait for 25 s, and then tells it to come again. */
const SLICE_TIMEOUT_MS = 40_000;

/** How long it is asked while nothing answers. */
const PATIENCE_MS = 10_000;

/** The same where work may go on without it. */
const PATIENCE_BEFORE_PASSING_MS = 2_000;

/** Minimum time between two requests of one wait. */
const PACE_MS = 100;

/** An answer that comes sooner is not the end of a wait. After more than one of them the pauses grow, up to a maximum. */
const EARLY_MS = 500;
const EARLY_PAUSE_MAX_MS = 2_000;

/** Time over which many come back that were told the same. */
const COMING_BACK_MS = 1_000;

/** How often an answer is looked for that nobody wants but to give it back. */
const GIVING_BACK_MAX = 5;

/** Refusals of Headgate's that are none of what was asked for. */
const OWN_TROUBLE = new Set(['limiter_unavailable', 'limiter_overloaded', 'internal']);

/** One wait for a lease, over as many requests as it takes. */
interface LeaseWait {
  readonly request: LeaseRequest;
  /** When it is over. Infinity: not by itself. */
  readonly until: number;
  /** How long it may wait from its first request on, the same in all of them. Infinity: as long as the group allows. */
  maxWaitMs: number;
  /** Names the wait from the second request on. */
  ticket: string | undefined;
  /** Names it before, so that an answer which was lost is had again. */
  key: string;
  /** When nothing answered for the first time since something did; null: it answers. */
  silentSince: number | null;
  failures: number;
  /** Early answers in a row that asked for another request at once. */
  early: number;
}

/** Waits for a lease. It holds nothing where Headgate cannot be reached, and work passes then. */
export async function acquire(gate: Gate, request: LeaseRequest): Promise<RenewedLease> {
  const { signal, maxWaitMs, ticket } = request;
  signal?.throwIfAborted();
  const until = steadyNow() + (maxWaitMs ?? Infinity);
  // One that does not wait needs no seat.
  const leave = maxWaitMs === 0 ? () => {} : await gate.seatsFor(request).take(request);
  const wait: LeaseWait = {
    request,
    until,
    ticket,
    // Headgate counts the time of an earlier ticket from that ticket's first request on.
    maxWaitMs: ticket === undefined ? leftUntil(until) : (maxWaitMs ?? Infinity),
    key: newKey(),
    silentSince: null,
    failures: 0,
    early: 0,
  };
  try {
    const answer = await goOnAsking(gate, wait);
    return new RenewedLease(gate, answer && granted(answer), signal);
  } catch (error) {
    if (wait.ticket !== undefined) leaveQueue(gate, wait.ticket);
    throw error;
  } finally {
    leave();
  }
}

/** Asks until there is a lease. Null: work passes without one. */
async function goOnAsking(gate: Gate, wait: LeaseWait): Promise<ServerAnswer | null> {
  const { signal } = wait.request;
  for (;;) {
    signal?.throwIfAborted();
    if (gate.passes()) return null;
    const answer = await ask(gate, wait).catch((error: unknown) => again(gate, wait, error));
    if (answer === 'pass') return null;
    if (answer !== 'again') {
      if (answer.status === 201) return answer;
      wait.ticket = ticketIn(answer);
      await sleep(pauseAfter(answer, wait), signal);
    }
  }
}

/** Asks once, and hears the answer, unless the caller leaves before. */
async function ask(gate: Gate, wait: LeaseWait): Promise<ServerAnswer> {
  const { signal } = wait.request;
  const asked = post(gate, wait);
  try {
    const answer = await orAborted(asked, signal);
    wait.silentSince = null;
    wait.failures = 0;
    gate.answered();
    return answer;
  } catch (error) {
    if (signal?.aborted) giveBack(gate, wait, asked).catch(ignore);
    throw error;
  }
}

/** Sends one request of a wait. The same again has the same answer. */
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

/** Waits for the answer that its caller wants no more, and gives back what comes. One that was lost is had again. */
async function giveBack(gate: Gate, wait: LeaseWait, first: Promise<ServerAnswer>): Promise<void> {
  let asked = first;
  for (let attempts = 1; ; attempts += 1) {
    try {
      const answer = await asked;
      if (answer.status !== 201) return leaveQueue(gate, ticketIn(answer));
      return await new RenewedLease(gate, granted(answer), undefined).release('cancelled');
    } catch (error) {
      const isLost = error instanceof HeadgateError && error.reason === 'unreachable';
      if (!isLost || attempts === GIVING_BACK_MAX) return;
      await sleep(backOff(attempts));
      asked = post(gate, wait);
    }
  }
}

const leftUntil = (until: number): number => Math.max(0, until - steadyNow());

/** Finds the pause before the next request of a wait. A request that is five seconds late has lost its place. */
function pauseAfter({ body, sentAt }: ServerAnswer, wait: LeaseWait): number {
  const reported = Number(body['retry_after_ms'] ?? 0);
  if (reported > 0) return reported + Math.random() * COMING_BACK_MS;
  const tookMs = steadyNow() - sentAt;
  wait.early = tookMs < EARLY_MS ? wait.early + 1 : 0;
  if (wait.early > 1) return Math.min(backOff(wait.early), EARLY_PAUSE_MAX_MS);
  return Math.max(0, PACE_MS - tookMs);
}

/** Decides whether a wait goes on after an error, and lets time pass. */
async function again(gate: Gate, wait: LeaseWait, error: unknown): Promise<'again' | 'pass'> {
  const { signal, maxWaitMs } = wait.request;
  if (signal?.aborted || !(error instanceof HeadgateError)) throw error;
  wait.failures += 1;
  const now = steadyNow();
  if (error.reason === 'unreachable' || OWN_TROUBLE.has(error.reason)) {
    wait.silentSince ??= now;
    const pause = Math.max(backOff(wait.failures), error.retryAfterMs ?? 0);
    const mayPass = gate.onUnavailable === 'pass' && error.reason === 'unreachable';
    if (now + pause > patience(wait, wait.silentSince, mayPass)) {
      if (!mayPass) throw error;
      gate.passFromNow();
      return 'pass';
    }
    // The same ticket or key again: whatever the lost answer was, it is had then.
    await sleep(pause, signal);
    return 'again';
  }
  // What the group refuses stands, unless the caller said how long it is willing to wait.
  const wantsMore = maxWaitMs !== undefined && isTemporary(error);
  const pause = jittered(error.retryAfterMs ?? 1_000);
  if (!wantsMore || now + pause > wait.until) throw error;
  await sleep(pause, signal);
  wait.ticket = undefined;
  wait.key = newKey();
  wait.maxWaitMs = leftUntil(wait.until);
  return 'again';
}

/** Tells until when a wait goes on that is answered by nobody. */
function patience({ request, until }: LeaseWait, silentSince: number, mayPass: boolean): number {
  if (mayPass) return Math.min(until, silentSince + PATIENCE_BEFORE_PASSING_MS);
  return request.maxWaitMs === undefined ? silentSince + PATIENCE_MS : until;
}

/** Tells whether there is merely no slot now, so that the same request may succeed later. */
export function isTemporary({ status, reason }: HeadgateError): boolean {
  if (reason === 'queue_timeout') return true;
  return (status === 429 || status === 503) && !OWN_TROUBLE.has(reason);
}

/** Leaves the queue. Whoever cannot say so is forgotten after a while. */
function leaveQueue(gate: Gate, ticket: string): void {
  const path = `/tickets/${encodeURIComponent(ticket)}`;
  gate.server.exchange({ method: 'DELETE', path }).catch(ignore);
}

function ignore(): void {}

/** Makes a key that nobody else makes. `randomUUID` is not there on pages without TLS. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
