import type { GatewayKeyConfig } from '../../contract/config/config.ts';
import type { Env } from '../../env.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { readSecret, secretFault, fingerprint, gatewayKeyHash } from '../../runtime/secrets.ts';
import { readCredentials, type Credentials } from '../../upstream/transfer/credentials.ts';
import type { RequestedLanes } from '../../routing/placed-call.ts';
import { refusedKey, requiresKey } from '../../routing/key-access.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { rejected, type Rejected } from '../results/result.ts';

export interface Caller {
  /** Name for fairness and costs: a gateway key's id, otherwise the fingerprint of the provider key. */
  readonly id: string;
  readonly gatewayKeyId: string | null;
  /** Its gateway key, which limits the groups that it may use. */
  readonly key: Pick<GatewayKeyConfig, 'id' | 'groups' | 'allow' | 'team'> | null;
  /** Lanes of its gateway key: the default one, and the best that it allows. */
  readonly keyLanes: RequestedLanes['keyLanes'];
  /** Maximum wait that its gateway key sets. null means the limits of the groups apply. */
  readonly keyTimeoutMs: number | null;
  readonly credentials: Credentials;
  readonly fingerprint: string | null;
  /** All ids that a group's `match.keys` may name. */
  readonly keyIds: readonly string[];
}

export interface UpstreamKey {
  /** The operator's key to inject. null if the caller's is forwarded unchanged. */
  readonly injected: string | null;
  readonly fingerprint: string | null;
}

/**
 * Authenticates a caller. Rejects a call without a gateway key if all calls need one. `missingKey` checks upstreams
 * that require one.
 */
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
    // The look-up is by a digest, so its timing reveals nothing about a key.
    const hash = await gatewayKeyHash(gatewayKey);
    key = table.keys.get(hash) ?? null;
    if (key === null) {
      return rejected({
        reason: 'key_invalid',
        message: 'Unknown gateway key. Check the key, or ask the operator for a new one.',
      });
    }
    const reply = refusedKey(key, hash);
    if (reply !== null) return rejected(reply);
  } else if (table.needKey === 'all') {
    return rejected({
      reason: 'key_missing',
      message:
        'This deployment requires a gateway key. Send it in the `headgate-key` header, or in place of the provider key.',
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
    keyTimeoutMs: key?.timeout_ms ?? null,
    credentials,
    fingerprint: print,
    keyIds: [gatewayKeyId, print].filter((id) => id !== null),
  };
  return { kind: 'identified', caller };
}

/** Rejects a call without a gateway key to an upstream that requires one. null if the call may be sent there. */
export function missingKey(
  upstream: Pick<Upstream, 'id' | 'requiresKey'>,
  caller: Pick<Caller, 'gatewayKeyId'>,
  { needKey, snapshot }: RoutingTable,
): Rejected | null {
  if (needKey === 'none' || caller.gatewayKeyId !== null) return null;
  if (!requiresKey(snapshot.config, upstream)) return null;
  const message = `Upstream \`${upstream.id}\` requires a gateway key. Send it in the \`headgate-key\` header, or in place of the provider key.`;
  return rejected({ reason: 'key_missing', message, about: { upstream: upstream.id } });
}

/**
 * Chooses the key for an upstream. The operator's key is used only behind a gateway key. `isSpilled` means that the
 * call did not request this upstream, so its own provider key belongs to another one.
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
    const message = `Upstream \`${upstream.id}\` no longer has a key of the operator. Use another upstream, or ask the operator to set its \`secret\`.`;
    return rejected({ reason: 'upstream_unreachable', message });
  }
  if (caller.gatewayKeyId === null) {
    const message = `Upstream \`${upstream.id}\` uses the operator's key, so it requires a gateway key. Send it in the \`headgate-key\` header.`;
    return rejected({ reason: 'key_missing', message });
  }
  if (caller.credentials.providerKey !== null && !isSpilled) return { kind: 'key', key: callers };
  const injected = readSecret(env, upstream.secret);
  if (injected === null) {
    const message = `The operator's key for upstream \`${upstream.id}\` is not available: the secret \`${upstream.secret}\` ${secretFault(env, upstream.secret)}. Ask the operator to set it.`;
    return rejected({ reason: 'secret_missing', message });
  }
  const print = await fingerprint(table.snapshot.fingerprintKey, injected);
  return { kind: 'key', key: { injected, fingerprint: print } };
}

/** The error reply to a call that no upstream could serve. null for other calls. */
export function unsupported({ credentials }: Caller): ErrorReply | null {
  if (!credentials.sigV4) return null;
  const message =
    'A call signed with SigV4 is bound to its host, so Headgate cannot forward it. Use a Bedrock API key as a bearer token instead.';
  return { reason: 'key_invalid', message };
}
