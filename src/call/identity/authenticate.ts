import type { GatewayKeyConfig } from '../../contract/config/config.ts';
import { directoryOf, type Env, type LocationVariables } from '../../env.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import {
  readSecret,
  secretFault,
  fingerprint,
  gatewayKeyHash,
  accountName,
} from '../../runtime/secrets.ts';
import { readCredentials, type Credentials } from '../../upstream/transfer/credentials.ts';
import type { RequestedLanes } from '../../routing/placed-call.ts';
import { refusedKey, requiresKey } from '../../routing/key-access.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { BoundedMap, BoundedSet } from '../../core/parts/bounded-map.ts';
import { accountSignOf, type AccountSign } from '../../providers/accounts.ts';
import type { KeyAccount } from '../../routing/placement.ts';
import { logEvent } from '../../runtime/log.ts';
import { steadyClock, EachSecond, within, type Background } from '../../runtime/async.ts';
import { rejected, type Rejected } from '../results/result.ts';

/**
 * Authenticates a caller, and finds the account of its provider key. A short-lived key, or one of many keys of an
 * account, belongs to its account only once its upstream has accepted it, because anyone can forge what a key claims.
 * Decision 29 has the reasons.
 */

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

/** Maximum keys whose accounts this isolate remembers. For others it asks again. */
const KEYS_MAX = 10_000;

/** Maximum gateway keys whose accounts it remembers. */
const HOMES_MAX = 5_000;

/** Maximum characters of a header that names an account. */
const VALUE_LENGTH_MAX = 200;

const ANSWER_MS_MAX = 1_000;

/**
 * Maximum questions per second to the directory, of which there is one, while keys can be made up. A key beyond that
 * starts with an unknown account.
 */
const ASKED_EACH_SECOND_MAX = 20;

/**
 * Maximum updates per second to the directory, because some clients sign a key for every call. An update that is not
 * sent can be learned again.
 */
const REPORTED_EACH_SECOND_MAX = 5;

/** The account of each key that its upstream has accepted. */
const accounts = new BoundedMap<string, string>(KEYS_MAX);

/** Accounts of the keys that callers of each gateway key have used, and the last one of each. */
const homes = new BoundedSet<string>(HOMES_MAX);
const lastHomes = new BoundedMap<string, string>(HOMES_MAX);

const questions = new EachSecond(ASKED_EACH_SECOND_MAX);
const news = new EachSecond(REPORTED_EACH_SECOND_MAX);

interface AccountCall {
  readonly caller: Caller;
  readonly table: RoutingTable;
  readonly env: Env;
  readonly request: Pick<Request, 'headers'>;
}

interface AnsweredAccountCall extends AccountCall {
  readonly ctx: Background;
}

/**
 * The account of a caller's own key at an upstream. null if the key counts for itself, as the operator's keys do, and
 * keys of providers without account information.
 */
export async function accountOf(
  call: AccountCall,
  upstream: Upstream,
  key: UpstreamKey,
): Promise<KeyAccount | null> {
  const { caller, table, request } = call;
  const sign = signOf(call, upstream, key);
  if (sign === null) return null;
  const { fingerprintKey } = table.snapshot;
  if (sign.by === 'header') {
    // A caller without a gateway key is unknown and may send any header.
    const value = caller.gatewayKeyId === null ? null : request.headers.get(sign.header);
    if (value === null || value === '') return null;
    const name = await nameOf(fingerprintKey, upstream, sign, value);
    return { kind: 'known', name, isProved: true };
  }
  const id = idOf(upstream, key);
  const known = accounts.get(id);
  if (known !== undefined) return verified(call, upstream, known);
  const claimed =
    sign.by === 'claim' ? await nameOf(fingerprintKey, upstream, sign, sign.account) : null;
  const home = homeOf(call, upstream, claimed);
  if (home !== null) return { kind: 'known', name: home, isProved: false };
  const stored = await askDirectory(call.env, id);
  if (stored === null) return { kind: 'unproved', claimed };
  accounts.set(id, stored);
  return verified(call, upstream, stored);
}

/** The account of a key that its upstream has accepted. It becomes a home of the caller's gateway key. */
function verified(call: AccountCall, upstream: Upstream, name: string): KeyAccount {
  noteHome(call, upstream, name);
  return { kind: 'known', name, isProved: true };
}

/** The account of a key that its upstream has accepted, for any caller. null if it is unknown. */
export async function accountOfTaken(
  env: Pick<Env, 'DIRECTORY'> & LocationVariables,
  upstream: Upstream,
  key: UpstreamKey,
): Promise<string | null> {
  return knownAccountOf(upstream, key) ?? (await askDirectory(env, idOf(upstream, key)));
}

/** The account of a key as far as this isolate knows. null if it is unknown here, or the key counts for itself. */
export function knownAccountOf(upstream: Upstream, key: UpstreamKey): string | null {
  return accounts.get(idOf(upstream, key)) ?? null;
}

/**
 * Notes an answer that shows that an upstream has accepted a key. Returns the account of the key. null if there was
 * nothing to learn.
 */
export async function noteTaken(
  call: AnsweredAccountCall,
  upstream: Upstream,
  key: UpstreamKey,
  account: KeyAccount | null,
  answer: Response,
): Promise<string | null> {
  if (account === null || (account.kind === 'known' && account.isProved)) return null;
  const sign = signOf(call, upstream, key);
  if (sign === null || sign.by === 'header') return null;
  const { fingerprintKey } = call.table.snapshot;
  // If the answer names no account, the key gets its own.
  const value =
    sign.by === 'claim'
      ? sign.account
      : (answer.headers.get(sign.header) ?? '').slice(0, VALUE_LENGTH_MAX);
  const name = await nameOf(
    fingerprintKey,
    upstream,
    value === '' ? null : sign,
    value === '' ? (key.fingerprint ?? '') : value,
  );
  const id = idOf(upstream, key);
  accounts.set(id, name);
  noteHome(call, upstream, name);
  notifyDirectory(call, id, name);
  return name;
}

/** Forgets the account of a key that its upstream no longer accepts. */
export function noteRevoked(call: AnsweredAccountCall, upstream: Upstream, key: UpstreamKey): void {
  const id = idOf(upstream, key);
  if (!accounts.has(id)) return;
  accounts.delete(id);
  notifyDirectory(call, id, null);
}

function signOf(
  { caller }: Pick<AccountCall, 'caller'>,
  upstream: Upstream,
  key: UpstreamKey,
): AccountSign | null {
  const { providerKey } = caller.credentials;
  if (upstream.isKeyless || key.injected !== null || providerKey === null) return null;
  return accountSignOf(upstream, providerKey);
}

/**
 * Identifies a key at an upstream together with how its account is found, because another method may find another
 * account.
 */
function idOf({ id, accountBy }: Upstream, key: UpstreamKey): string {
  return `${id} ${accountBy} ${key.fingerprint}`;
}

/** Names an account. Equal names at different upstreams are different accounts. */
function nameOf(
  fingerprintKey: string,
  upstream: Upstream,
  sign: AccountSign | null,
  account: string,
): Promise<string> {
  const of = sign === null ? 'key' : sign.by;
  return accountName(
    fingerprintKey,
    `${upstream.id} ${of} ${account.slice(0, 2 * VALUE_LENGTH_MAX)}`,
  );
}

/**
 * The likely account of a key that its upstream has not accepted yet: one whose keys its caller's gateway key has used.
 * The key then counts as familiar, and its first call need not run beside that account's pool.
 */
function homeOf(
  { caller }: AccountCall,
  upstream: Upstream,
  claimed: string | null,
): string | null {
  const { gatewayKeyId } = caller;
  if (gatewayKeyId === null) return null;
  if (claimed === null) return lastHomes.get(`${gatewayKeyId} ${upstream.id}`) ?? null;
  return homes.has(`${gatewayKeyId} ${claimed}`) ? claimed : null;
}

function noteHome({ caller }: AccountCall, upstream: Upstream, name: string): void {
  const { gatewayKeyId } = caller;
  if (gatewayKeyId === null) return;
  homes.add(`${gatewayKeyId} ${name}`);
  lastHomes.set(`${gatewayKeyId} ${upstream.id}`, name);
}

/**
 * Asks for what another isolate or an earlier process has learned. null if there is nothing, or the directory cannot be
 * asked.
 */
async function askDirectory(
  env: Pick<Env, 'DIRECTORY'> & LocationVariables,
  id: string,
): Promise<string | null> {
  if (!questions.mayOneMore(steadyClock.now())) return null;
  try {
    return await within(ANSWER_MS_MAX, directoryOf(env).accountOf(id));
  } catch (error) {
    logEvent('directory_unreachable', { error: String(error) });
    return null;
  }
}

function notifyDirectory(
  { env, ctx }: Pick<AnsweredAccountCall, 'env' | 'ctx'>,
  id: string,
  account: string | null,
): void {
  if (!news.mayOneMore(steadyClock.now())) return;
  const reported = directoryOf(env).noteAccount(id, account);
  // A lost update can be learned again.
  ctx.waitUntil(reported.catch(() => {}));
}
