import type { MemberId } from './ids.ts';
import type { RefusalScope, Scope } from './scope.ts';

/**
 * Why an upstream did not serve a call. `upstream-signals.ts` defines the reaction to each cause.
 *
 * - `egress`: the upstream, or the edge before it, serves no calls from this location. Waiting does not help.
 * - `unauthorized`: the key is not accepted, or no longer accepted.
 * - `quota`: the account is out of money, or its plan is used up. Waiting does not help.
 * - `never_fits`: the call is larger than the upstream ever accepts.
 * - `long_window`: the limit of a day, a week or a plan is used up.
 * - `concurrency`: too many concurrent calls.
 * - `overload`: the upstream or the model lacks capacity for all its clients.
 * - `tokens`, `requests`: a limit per minute or second.
 * - `ramp`: the number of calls rose too quickly.
 * - `unknown`: a 429 without details.
 * - `error`: another 5xx, or a connection that broke before the first byte.
 */
export type RefusalKind =
  | 'egress'
  | 'unauthorized'
  | 'quota'
  | 'never_fits'
  | 'long_window'
  | 'concurrency'
  | 'overload'
  | 'tokens'
  | 'requests'
  | 'ramp'
  | 'unknown'
  | 'error';

/** Refusals that concern no limit, but the location, the key or size of the call, or the health of the upstream. */
const NO_LIMIT: ReadonlySet<string> = new Set([
  'egress',
  'unauthorized',
  'never_fits',
  'overload',
  'error',
]);

/** Counts the refusals that callers would have seen as a 429 for a limit of the upstream. */
export function refusedForLimits(byKind: Readonly<Record<string, number>>): number {
  return Object.entries(byKind).reduce((sum, [kind, n]) => (NO_LIMIT.has(kind) ? sum : sum + n), 0);
}

/** Refusals that eject a member, because the next call there would be refused too. */
const EJECTING = ['unauthorized', 'quota', 'egress'] as const;

export type EjectingRefusal = (typeof EJECTING)[number];

/** Whether a refusal ejects a member, once it is clear that the call did not cause it. */
export function takesOut(kind: RefusalKind | 'served'): kind is EjectingRefusal {
  return (EJECTING as readonly string[]).includes(kind);
}

/** A refusal of a call by one member, reported by the member that served the call afterwards. */
export interface Blame {
  readonly member: MemberId;
  readonly kind: RefusalKind;
  /** How long ago the member refused it, in milliseconds. */
  readonly agoMs: number;
}

/** One limit of the upstream, as reported by the headers of its answer. */
export interface LimitHint {
  readonly dimension: 'requests' | 'tokens' | 'input_tokens' | 'output_tokens';
  /** Length of the window of the limit, in milliseconds. null if the header does not report it. */
  readonly windowMs: number | null;
  readonly limit: number | null;
  readonly remaining: number | null;
  /** Time until the full limit is available again, in milliseconds. */
  readonly resetMs: number | null;
}

/** What the upstream's answer to a call reports about its limits. */
export interface UpstreamSignal {
  /** `served` means that the upstream accepted the call. That is known at the headers, before the body ends. */
  readonly kind: 'served' | RefusalKind;
  /** How long the upstream asks to wait. null if it does not. */
  readonly retryAfterMs: number | null;
  /** The maximum number of concurrent calls, if the refusal names it. */
  readonly slotsMax: number | null;
  readonly hints: readonly LimitHint[];
  /** For `overload`: the status was 429, on which clients fall back to another model or tier. */
  readonly isRate?: true;
  /** The upstream's message, shortened and without secrets. Absent if it sent none that may be shown. */
  readonly words?: string;
  /** The calls that a refusal is about. Absent if it is about all calls at the upstream. */
  readonly scope?: RefusalScope;
  /** Names in the body of the call, if the body was read after the lease was granted. */
  readonly names?: Pick<Scope, 'model' | 'tier'>;
  /**
   * For `served`: the answer reports a mistake of the caller and proves nothing about the key. Absent if the call
   * succeeded.
   */
  readonly isMistake?: boolean;
  /** For `served`: the members that refused the same call, which are therefore to blame. Absent if there are none. */
  readonly blamed?: readonly Blame[];
  /**
   * The gateway key of the lease whose holder reported the signal. Empty without a key. Absent if Headgate saw the
   * answer.
   */
  readonly reportedBy?: string;
}

export const SERVED: UpstreamSignal = {
  kind: 'served',
  retryAfterMs: null,
  slotsMax: null,
  hints: [],
};
