import type { GatewayKeyConfig } from '../../contract/config/config.ts';
import type { Env } from '../../env.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { upstreamSecret } from '../../runtime/secrets.ts';
import { readCredentials, type Credentials } from '../../upstream/transfer/credentials.ts';
import type { Ticket } from '../acquire/admission.ts';
import { fingerprint, gatewayKeyHash } from '../../runtime/digests.ts';
import { refusedKey } from '../../routing/key-access.ts';
import type { RoutingTable } from '../../config/snapshots.ts';

/** Who calls. */
export interface Caller {
  /** Who is charged: a gateway key's id, else the fingerprint of the provider key. */
  readonly id: string;
  readonly gatewayKeyId: string | null;
  /** Its gateway key, by which it may use some groups and not others. */
  readonly key: Pick<GatewayKeyConfig, 'id' | 'groups' | 'allow'> | null;
  /** What its gateway key gives to calls that ask for no lane, and the best lane that it allows. */
  readonly keyLanes: Ticket['keyLanes'];
  readonly credentials: Credentials;
  /** Fingerprint of the provider key that the caller brought. */
  readonly fingerprint: string | null;
  /** Everything that a group's `match.keys` may name. */
  readonly keyIds: readonly string[];
}

/** What an upstream gets to see of the caller's keys. */
export interface UpstreamKey {
  /** The operator's key to inject; null: the caller's passes on as it came. */
  readonly injected: string | null;
  /** Fingerprint of the key that the upstream sees, which names its account. */
  readonly fingerprint: string | null;
}

/** Finds out who calls. Where gateway keys are configured, a call without one is refused. */
export async function identify(
  table: RoutingTable,
  headers: Headers,
  query: URLSearchParams,
): Promise<Caller | ErrorReply> {
  const credentials = readCredentials(headers, query);
  const { gatewayKey, providerKey } = credentials;
  let key: GatewayKeyConfig | null = null;
  if (gatewayKey !== null) {
    // The look-up is by a digest, so its timing says nothing about a key.
    const hash = await gatewayKeyHash(gatewayKey);
    key = table.keys.get(hash) ?? null;
    if (key === null) {
      return { reason: 'key_invalid', message: 'The gateway key is not known here.' };
    }
    const refusal = refusedKey(key, hash);
    if (refusal !== null) return refusal;
  } else if (table.keys.size > 0) {
    return {
      reason: 'key_missing',
      message:
        'This Headgate wants a gateway key: send it in the headgate-key header, or in place of the provider key.',
    };
  }
  const print =
    providerKey === null ? null : await fingerprint(table.snapshot.fingerprintKey, providerKey);
  const gatewayKeyId = key?.id ?? null;
  return {
    id: gatewayKeyId ?? print ?? 'anonymous',
    gatewayKeyId,
    key,
    keyLanes: { byDefault: key?.lane_default ?? null, best: key?.lane_max ?? 'high' },
    credentials,
    fingerprint: print,
    keyIds: [gatewayKeyId, print].filter((id) => id !== null),
  };
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
): Promise<UpstreamKey | ErrorReply> {
  if (upstream.secret === null) {
    if (!isSpilled) return { injected: null, fingerprint: caller.fingerprint };
    return {
      reason: 'upstream_unreachable',
      message: `The upstream ${upstream.id} has no key of the operator's any more.`,
    };
  }
  if (caller.gatewayKeyId === null) {
    return {
      reason: 'key_missing',
      message: `The upstream ${upstream.id} uses the operator's key, so it wants a gateway key: send it in the headgate-key header.`,
    };
  }
  if (caller.credentials.providerKey !== null && !isSpilled) {
    return { injected: null, fingerprint: caller.fingerprint };
  }
  const injected = upstreamSecret(env, upstream.secret);
  if (injected === null) {
    return {
      reason: 'secret_missing',
      message: `The operator's key for the upstream ${upstream.id} is not set: the secret ${upstream.secret} is missing.`,
    };
  }
  return { injected, fingerprint: await fingerprint(table.snapshot.fingerprintKey, injected) };
}
