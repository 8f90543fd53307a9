import { BREAKER_DEFAULTS, type BreakerSettings } from '../words/settings.ts';
import { after, earlier, instant, type InstantMs, type LeaseId } from '../words/ids.ts';

/**
 * A circuit breaker.
 *
 * - `closed`: calls pass, and their results are counted.
 * - `open`: too many calls failed. No call passes until `openUntil`.
 * - `half_open`: single calls probe whether the upstream has recovered.
 *
 * A probe holds a permit from its grant until the upstream's answer is known or its lease ends. So a lost probe cannot
 * keep the breaker half open forever.
 */
export interface Breaker {
  phase: 'closed' | 'open' | 'half_open';
  /** The last results while closed, oldest first. */
  results: BreakerResult[];
  openedAt: InstantMs;
  openUntil: InstantMs;
  /** Number of openings since it was last closed. */
  openings: number;
  probes: LeaseId[];
  /** Probes served since it became half open. */
  served: number;
  /** The refusal that last opened the breaker, if its status was 429. */
  limit?: BreakerLimit;
}

/** A refusal with status 429. */
export interface BreakerLimit {
  /** The upstream's message, without secrets. null if it sent none. */
  readonly words: string | null;
}

interface BreakerResult {
  readonly at: InstantMs;
  readonly failed: boolean;
  /** A lease holder reported the failure. */
  readonly isReported?: true;
}

export interface CallResult {
  readonly leaseId: LeaseId;
  readonly grantedAt: InstantMs;
}

/** Number of recent results that count, unless the breaker requires more. */
const RESULTS_MAX = 20;

/** Maximum wait that an upstream may ask for. After it, a probe shows whether the upstream has recovered. */
const OPEN_ASKED_MAX_MS = 900_000;

/** Maximum relative jitter of the open time, so that several groups do not probe one upstream together. */
const JITTER = 0.1;

/** Concurrent probes: one at first, and more once one was served. `PROBES_MAX` served probes close the breaker. */
const PROBES_FIRST = 1;
const PROBES_MAX = 3;

export function closedBreaker(): Breaker {
  return {
    phase: 'closed',
    results: [],
    openedAt: instant(0),
    openUntil: instant(0),
    openings: 0,
    probes: [],
    served: 0,
  };
}

/** Whether a call may be granted now. While half open, whether there is a permit for another probe. */
export function allows(breaker: Breaker, now: InstantMs): boolean {
  if (breaker.phase === 'closed') return true;
  if (breaker.phase === 'open') return now >= breaker.openUntil;
  return breaker.probes.length < (breaker.served === 0 ? PROBES_FIRST : PROBES_MAX);
}

/** Returns when time alone changes `allows`. Infinity if only a result does. */
export function nextChangeAt(breaker: Breaker, now: InstantMs): InstantMs {
  const isWaiting = breaker.phase === 'open' && now < breaker.openUntil;
  return isWaiting ? breaker.openUntil : instant(Infinity);
}

/** Notes a grant, which is a probe unless the breaker is closed. The caller has checked `allows`. */
export function noteGranted(breaker: Breaker, leaseId: LeaseId): void {
  if (breaker.phase === 'closed') return;
  if (breaker.phase === 'open') {
    breaker.phase = 'half_open';
    breaker.served = 0;
  }
  breaker.probes.push(leaseId);
}

/**
 * Notes that the upstream accepted the call. The first content shows it, however long the answer takes. An answer that
 * breaks later counts as a failure too.
 */
export function noteServed(
  breaker: Breaker,
  call: CallResult,
  now: InstantMs,
  settings: BreakerSettings = BREAKER_DEFAULTS,
): void {
  if (breaker.phase === 'closed') {
    return noteResult(breaker, call, { failed: false }, now, settings);
  }
  if (!returnPermit(breaker, call.leaseId)) return;
  breaker.served += 1;
  if (breaker.served < PROBES_MAX) return;
  breaker.phase = 'closed';
  breaker.results = [];
  breaker.openings = 0;
  breaker.probes = [];
}

/**
 * Notes that the call failed, because the upstream was overloaded, broken or unreachable.
 *
 * @param retryAfterMs how long the upstream asks to wait
 */
export function noteFailed(
  breaker: Breaker,
  call: CallResult & {
    readonly retryAfterMs: number | null;
    readonly isReported?: boolean;
    readonly limit?: BreakerLimit;
  },
  now: InstantMs,
  settings: BreakerSettings = BREAKER_DEFAULTS,
): void {
  const { isReported = false } = call;
  if (breaker.phase !== 'closed') {
    const isProbe = returnPermit(breaker, call.leaseId) || (!isReported && wasProbe(breaker, call));
    if (isProbe) open(breaker, call, now, settings);
    return;
  }
  noteResult(breaker, call, { failed: true, ...(isReported && { isReported }) }, now, settings);
  const failed = breaker.results.filter((result) => result.failed).length;
  const { length } = breaker.results;
  if (length < settings.callsMin || failed < settings.failedShare * length) return;
  open(breaker, call, now, settings);
}

/**
 * Notes the end of a call's lease. A probe without a result returns its permit. A probe whose holder was lost has
 * failed.
 */
export function noteEnded(
  breaker: Breaker,
  leaseId: LeaseId,
  isLost: boolean,
  now: InstantMs,
  settings: BreakerSettings = BREAKER_DEFAULTS,
): void {
  if (returnPermit(breaker, leaseId) && isLost) {
    open(breaker, { retryAfterMs: null }, now, settings);
  }
}

/** After a reset, revokes the permits of probes whose leases no longer exist. */
export function keepProbes(breaker: Breaker, isAlive: (leaseId: LeaseId) => boolean): void {
  breaker.probes = breaker.probes.filter((leaseId) => isAlive(leaseId));
}

/** Whether calls failed lately, so that reports of served calls matter. */
export function hasFailedLately(
  { results }: Breaker,
  now: InstantMs,
  { windowMs }: BreakerSettings = BREAKER_DEFAULTS,
): boolean {
  return results.some(({ at, failed }) => failed && now - at < windowMs);
}

/** Applies changed settings. A breaker that was disabled closes. */
export function applySettings(breaker: Breaker, { failedShare }: BreakerSettings): void {
  if (failedShare === Infinity && breaker.phase !== 'closed') {
    Object.assign(breaker, closedBreaker());
  }
}

export function removeReported(breaker: Breaker): void {
  breaker.results = breaker.results.filter(({ isReported }) => isReported !== true);
}

function noteResult(
  breaker: Breaker,
  call: CallResult,
  result: Omit<BreakerResult, 'at'>,
  now: InstantMs,
  { windowMs, callsMin }: BreakerSettings,
): void {
  // A call granted before the end of the last opening brings no new information.
  if (call.grantedAt < breaker.openUntil) return;
  const fresh = breaker.results.filter(({ at }) => now - at < windowMs);
  breaker.results = [...fresh, { at: now, ...result }].slice(-Math.max(RESULTS_MAX, callsMin));
}

function open(
  breaker: Breaker,
  { retryAfterMs, limit }: { readonly retryAfterMs: number | null; readonly limit?: BreakerLimit },
  now: InstantMs,
  { openMs, openMsMax }: BreakerSettings,
): void {
  const lengthMs = Math.min(Math.max(openMs, openMsMax), openMs * 2 ** breaker.openings);
  const askedMs = Math.min(OPEN_ASKED_MAX_MS, retryAfterMs ?? 0);
  const jittered = lengthMs * (1 + JITTER * fraction(now));
  breaker.phase = 'open';
  breaker.openedAt = now;
  breaker.openUntil = after(now, Math.max(Math.round(jittered), askedMs));
  breaker.openings += 1;
  breaker.results = [];
  breaker.probes = [];
  breaker.served = 0;
  if (limit === undefined) delete breaker.limit;
  else breaker.limit = limit;
}

/** Returns a probe's permit. Returns false if the call had none. */
function returnPermit(breaker: Breaker, leaseId: LeaseId): boolean {
  const index = breaker.probes.indexOf(leaseId);
  if (index === -1) return false;
  breaker.probes.splice(index, 1);
  return true;
}

/** Whether a call was granted since the breaker is half open. A served probe may still fail in its answer. */
function wasProbe({ phase, openUntil }: Breaker, { grantedAt }: CallResult): boolean {
  return phase === 'half_open' && grantedAt >= openUntil;
}

/** Hashes the instant to a number in [0, 1), because the core has no randomness. */
function fraction(at: InstantMs): number {
  const bits = Math.imul(at % 2 ** 32, 2_654_435_761);
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
}

/** Corrects times that were noted by a clock that was ahead. Durations stay. */
export function rebase(breaker: Breaker, now: InstantMs): void {
  const aheadMs = Math.max(0, breaker.openedAt - now);
  breaker.openedAt = instant(breaker.openedAt - aheadMs);
  breaker.openUntil = instant(breaker.openUntil - aheadMs);
  breaker.results = breaker.results.map((each) => ({ ...each, at: earlier(each.at, now) }));
}
