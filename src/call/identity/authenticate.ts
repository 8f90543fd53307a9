import type { GatewayKeyConfig } from '../../contract/config/config.ts';
import type { Env } from '../../env.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { readSecret, secretFault } from '../../runtime/secrets.ts';
import { readCredentials, type Credentials } from '../../upstream/transfer/credentials.ts';
import type { CallTicket } from '../acquire/admission.ts';
import { rejected, type Rejected } from '../result.ts';
import { fingerprint, gatewayKeyHash } from '../../runtime/digests.ts';
import { refusedKey, requiresKey } from '../../routing/key-access.ts';
import type { RoutingTable } from '../../config/snapshots.ts';

/** The maker of a call. */
export interface Caller {
  /** Name under which it is charged: a gateway key's id, else the fingerprint of the provider key. */
  readonly id: string;
  readonly gatewayKeyId: string | null;
  /** Its gateway key, by which it may use some groups and not others. */
  readonly key: Pick<GatewayKeyConfig, 'id' | 'groups' | 'allow' | 'team'> | null;
  /** Lanes of its gateway key: of calls that ask for none, and the best that it allows. */
  readonly keyLanes: CallTicket['keyLanes'];
  /** How long its gateway key lets it wait; null: as long as groups do. */
  readonly keyTimeoutMs: number | null;
  readonly credentials: Credentials;
  /** Fingerprint of the provider key that the caller brought. */
  readonly fingerprint: string | null;
  /** Everything that a group's `match.keys` may name. */
  readonly keyIds: readonly string[];
}

/** The key that an upstream gets to see. */
export interface UpstreamKey {
  /** The operator's key to inject; null: the caller's passes on as it came. */
  readonly injected: string | null;
  /** Fingerprint of the key that the upstream sees, which names its account. */
  readonly fingerprint: string | null;
}

/** Finds out who calls. A call without a gateway key is rejected where all calls need one. `missingKey` checks where some do. */
export async function identify(
  table: RoutingTable,
  headers: Headers,
  query: URLSearchParams,
): Promise<{ readonly kind: 'identified'; readonly caller: Caller } | Rejected> {
  const credentials = readCredentials(headers, query);
  const { gatewayKey, providerKey, fault } = credentials;
  // An upstream and Headgate must not read different keys.
  if (fault !== null) return rejected({ reason: 'key_invalid', message: fault });
  let key: GatewayKeyConfig | null = null;
  if (gatewayKey !== null) {
    // The look-up is by a digest, so its timing says nothing about a key.
    const hash = await gatewayKeyHash(gatewayKey);
    key = table.keys.get(hash) ?? null;
    if (key === null) {
      return rejected({ reason: 'key_invalid', message: 'The gateway key is not known here.' });
    }
    const reply = refusedKey(key, hash);
    if (reply !== null) return rejected(reply);
  } else if (table.needKey === 'all') {
    return rejected({
      reason: 'key_missing',
      message:
        'This Headgate wants a gateway key: send it in the headgate-key header, or in place of the provider key.',
    });
  }
  const print =
    providerKey === null ? null : await fingerprint(table.snapshot.fingerprintKey, providerKey);
  const gatewayKeyId = key?.id ?? null;
  const caller = {
    id: gatewayKeyId ?? print ?? 'anonymous',
    gatewayKeyId,
    key,
    keyLanes: { byDefault: key?.lane_default ?? null, best: key?.lane_max ?? null },
    // A directory of the version before knows nothing of it.
    keyTimeoutMs: key?.timeout_ms ?? null,
    credentials,
    fingerprint: print,
    keyIds: [gatewayKeyId, print].filter((id) => id !== null),
  };
  return { kind: 'identified', caller };
}

/** Rejects a call without a gateway key to an upstream that requires one; null: it may go there. */
export function missingKey(
  upstream: Pick<Upstream, 'id' | 'requiresKey'>,
  caller: Pick<Caller, 'gatewayKeyId'>,
  { needKey, snapshot }: RoutingTable,
): Rejected | null {
  if (needKey === 'none' || caller.gatewayKeyId !== null) return null;
  if (!requiresKey(snapshot.config, upstream)) return null;
  const message = `The upstream ${upstream.id} requires a gateway key: send it in the headgate-key header, or in place of the provider key.`;
  return rejected({ reason: 'key_missing', message, about: { upstream: upstream.id } });
}

/**
 * Chooses the key for an upstream. The operator's goes out behind a gateway key only. `isSpilled`: the
 * call did not ask for this upstream, so a provider key that it brought is for another one.
 */
export async function keyFor(
  upstream: Upstream,
  caller: Caller,
  table: RoutingTable,
  env: Env,
  isSpilled = false,
): Promise<{ readonly kind: 'key'; readonly key: UpstreamKey } | Rejected> {
  const missing = missingKey(upstream, caller, table);
  if (missing !== null) return missing;
  if (upstream.isKeyless) return { kind: 'key', key: { injected: null, fingerprint: null } };
  const callers = { injected: null, fingerprint: caller.fingerprint };
  if (upstream.secret === null) {
    if (!isSpilled) return { kind: 'key', key: callers };
    const message = `The upstream ${upstream.id} has no key of the operator's any more.`;
    return rejected({ reason: 'upstream_unreachable', message });
  }
  if (caller.gatewayKeyId === null) {
    const message = `The upstream ${upstream.id} uses the operator's key, so it wants a gateway key: send it in the headgate-key header.`;
    return rejected({ reason: 'key_missing', message });
  }
  if (caller.credentials.providerKey !== null && !isSpilled) return { kind: 'key', key: callers };
  const injected = readSecret(env, upstream.secret);
  if (injected === null) {
    const message = `The operator's key for the upstream ${upstream.id} is not available: the secret ${upstream.secret} ${secretFault(env, upstream.secret)}.`;
    return rejected({ reason: 'secret_missing', message });
  }
  const print = await fingerprint(table.snapshot.fingerprintKey, injected);
  return { kind: 'key', key: { injected, fingerprint: print } };
}
