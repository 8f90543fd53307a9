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

/** A set of calls: those with every value that is not null. */
export interface Scope {
  /** In lower case. `NO_MODEL`: calls that name none. */
  readonly model: string | null;
  /** Any but the default, in lower case. */
  readonly tier: string | null;
  /** Fingerprint of a caller's own provider key. The keys of operators have none. */
  readonly credential: string | null;
}

/** Names of a call. `isUnread`: its body may name a model and a tier, and was not read. */
export interface CallNames extends Scope {
  readonly isUnread: boolean;
}

/** The model of calls that name no model: a refusal of one of them says nothing of those that do. */
export const NO_MODEL = '';

/** All calls. */
export const ALL_CALLS: Scope = { model: null, tier: null, credential: null };

/** Returns the names of a holder's call. */
export function namesOf({ model, tier, credential, isUnread = false }: Holder): CallNames {
  return {
    model: model?.toLowerCase() ?? (isUnread ? null : NO_MODEL),
    tier: tier ?? null,
    credential: credential ?? null,
    isUnread,
  };
}

/** Ends the names of credentials that confirm no refusal. */
const AMBIGUOUS_SUFFIX = '+';

/** Marks a credential that may not be the one that the upstream saw. */
export function ambiguous(credential: string): string {
  return `${credential}${AMBIGUOUS_SUFFIX}`;
}

/**
 * Whether a credential may not be the one that the upstream saw. It confirms no refusal, because a caller with one key could
 * bring that under two names.
 */
export function isAmbiguous(credential: string): boolean {
  return credential.endsWith(AMBIGUOUS_SUFFIX);
}

/** Returns the key under which a scope is stored. */
export function scopeKey({ model, tier, credential }: Scope): string {
  return JSON.stringify([model, tier, credential]);
}

export function isSameScope(a: Scope, b: Scope): boolean {
  return a.model === b.model && a.tier === b.tier && a.credential === b.credential;
}

/** Whether a scope may contain a call. A call that was not read may name any model and any tier. */
export function mayContain(scope: Scope, names: CallNames): boolean {
  const { model, tier, credential } = scope;
  if (credential !== null && credential !== names.credential) return false;
  const isNamed = (value: string | null, of: string | null): boolean =>
    value === null || value === of || (names.isUnread && of === null);
  return isNamed(model, names.model) && isNamed(tier, names.tier);
}

/** Returns the keys of all scopes that contain a call which was read, except that of all calls. */
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
