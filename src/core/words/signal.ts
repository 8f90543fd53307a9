import type { MemberId } from './ids.ts';
import type { RefusalScope, Scope } from './scope.ts';

/**
 * The cause for which an upstream did not serve a call. Different causes want different medicine:
 * `upstream-signals.ts` says which.
 * - `egress`: the upstream, or the edge before it, serves nobody from where the Worker calls; no wait helps.
 * - `unauthorized`: the key is not accepted, or not any more.
 * - `quota`: an account is out of money or of its plan; waiting does not help.
 * - `never_fits`: the call is larger than the upstream ever takes.
 * - `long_window`: the limit of a day, a week or a plan is used up.
 * - `concurrency`: too many calls at once.
 * - `overload`: the upstream, or the model, is short of capacity for everybody.
 * - `tokens`, `requests`: a limit per minute or second.
 * - `ramp`: calls became more too quickly.
 * - `unknown`: a 429 that says no more.
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

/** Refusals that are no matter of limits: of where the call came from, its key or its size, or an upstream that is ill. */
const NO_LIMIT: ReadonlySet<string> = new Set([
  'egress',
  'unauthorized',
  'never_fits',
  'overload',
  'error',
]);

/** Counts refusals for a limit of the upstream, which callers would have seen as 429, among those by kind. */
export function refusedForLimits(byKind: Readonly<Record<string, number>>): number {
  return Object.entries(byKind).reduce((sum, [kind, n]) => (NO_LIMIT.has(kind) ? sum : sum + n), 0);
}

/** Refusals that take a member out: whoever calls there next would be refused as well. */
const TAKING_OUT = ['unauthorized', 'quota', 'egress'] as const;

export type EjectingRefusal = (typeof TAKING_OUT)[number];

/** Whether a refusal takes a member out, once it is known that the call is not to blame for it. */
export function takesOut(kind: RefusalKind | 'served'): kind is EjectingRefusal {
  return (TAKING_OUT as readonly string[]).includes(kind);
}

/** A refusal of a call by a member, told by the one that served the call afterwards. */
export interface Blame {
  readonly member: MemberId;
  readonly kind: RefusalKind;
  /** How long ago the member refused it, in milliseconds. */
  readonly agoMs: number;
}

/** One limit of the upstream, as the headers of its answer tell it. */
export interface LimitHint {
  readonly dimension: 'requests' | 'tokens' | 'input_tokens' | 'output_tokens';
  /** Length of the window that the limit is counted over, in milliseconds; null: the header does not say. */
  readonly windowMs: number | null;
  readonly limit: number | null;
  readonly remaining: number | null;
  /** How long until the limit is whole again, in milliseconds. */
  readonly resetMs: number | null;
}

/** The upstream's answer to a call, as far as it tells of its limits. */
export interface UpstreamSignal {
  /** `served`: it took the call. Known at its headers, not at the end of its body. */
  readonly kind: 'served' | RefusalKind;
  /** How long to wait, as the upstream says. Null: it does not. */
  readonly retryAfterMs: number | null;
  /** The most calls at once, where the refusal names the number. */
  readonly slotsMax: number | null;
  readonly hints: readonly LimitHint[];
  /** Of `overload`: it came with status 429, on which clients fall back to another model or tier. */
  readonly isRate?: true;
  /** The upstream's message, shortened and without secrets. Absent if it sent none that may be shown. */
  readonly words?: string;
  /** The calls that a refusal is about. Absent if they are all calls at the upstream. */
  readonly scope?: RefusalScope;
  /** Names in the body of the call, if the body was read after the lease was granted. */
  readonly names?: Pick<Scope, 'model' | 'tier'>;
  /** Of `served`: the answer is about a mistake of the caller, and shows nothing of the key. Absent: the call was done. */
  readonly isMistake?: boolean;
  /** Of `served`: the members that refused the same call, so that it is them who are to blame. Absent: none. */
  readonly blamed?: readonly Blame[];
  /** The gateway key of the lease whose holder reported it; empty: no key. Absent: Headgate saw the answer. */
  readonly reportedBy?: string;
}

/** An answer that says nothing more than that the upstream took the call. */
export const SERVED: UpstreamSignal = {
  kind: 'served',
  retryAfterMs: null,
  slotsMax: null,
  hints: [],
};
