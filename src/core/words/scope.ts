import type { Holder } from './ticket.ts';

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
