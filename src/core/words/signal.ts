import type { MemberId } from './ids.ts';
import type { Holder } from './ticket.ts';

/** What an answer of the upstream says about capacity, and for which calls. */

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

/**
 * The calls that a refusal is about.
 * - `call`: this call alone. Other calls are served.
 * - `tier`: calls of the same service tier, for the same model.
 * - `model`: calls of the same model.
 * - `credential`: calls with the same provider key.
 * - `upstream`: all calls there.
 */
export type RefusalScope = 'call' | 'tier' | 'model' | 'credential' | 'upstream';

/** The set of calls that match every value that is not null. */
export interface Scope {
  /** In lower case. `NO_MODEL` for calls without a model. */
  readonly model: string | null;
  /** In lower case. Never the default tier. */
  readonly tier: string | null;
  /** Fingerprint of a caller's own provider key. The keys of operators have none. */
  readonly credential: string | null;
}

/** Names of a call. `isUnread` if its body may contain a model and a tier and was not read. */
export interface CallNames extends Scope {
  readonly isUnread: boolean;
}

/** The model of calls without a model. Their refusals say nothing about calls with a model. */
export const NO_MODEL = '';

export const ALL_CALLS: Scope = { model: null, tier: null, credential: null };

export function namesOf({ model, tier, credential, isUnread = false }: Holder): CallNames {
  return {
    model: model?.toLowerCase() ?? (isUnread ? null : NO_MODEL),
    tier: tier ?? null,
    credential: credential ?? null,
    isUnread,
  };
}

/** Suffix of credentials that confirm no refusal. */
const AMBIGUOUS_SUFFIX = '+';

/** Marks a credential that the upstream may not have used. */
export function ambiguous(credential: string): string {
  return `${credential}${AMBIGUOUS_SUFFIX}`;
}

/**
 * Whether the upstream may have used another credential. Such a credential confirms no refusal, because a caller with
 * one key could send it under two names.
 */
export function isAmbiguous(credential: string): boolean {
  return credential.endsWith(AMBIGUOUS_SUFFIX);
}

export function scopeKey({ model, tier, credential }: Scope): string {
  return JSON.stringify([model, tier, credential]);
}

export function isSameScope(a: Scope, b: Scope): boolean {
  return a.model === b.model && a.tier === b.tier && a.credential === b.credential;
}

/** Whether a scope may contain a call. An unread call may have any model and any tier. */
export function mayContain(scope: Scope, names: CallNames): boolean {
  const { model, tier, credential } = scope;
  if (credential !== null && credential !== names.credential) return false;
  const isNamed = (value: string | null, of: string | null): boolean =>
    value === null || value === of || (names.isUnread && of === null);
  return isNamed(model, names.model) && isNamed(tier, names.tier);
}

/** Returns the keys of all scopes that contain a call whose body was read, except the scope of all calls. */
export function keysOfScopes({ model, tier, credential }: Scope): readonly string[] {
  const keys: string[] = [];
  for (const withModel of model === null ? [null] : [null, model]) {
    for (const withTier of tier === null ? [null] : [null, tier]) {
      for (const withCredential of credential === null ? [null] : [null, credential]) {
        if (withModel === null && withTier === null && withCredential === null) continue;
        keys.push(scopeKey({ model: withModel, tier: withTier, credential: withCredential }));
      }
    }
  }
  return keys;
}
