// Finds the account of a provider key. A short-lived key, or one of many keys of an account, belongs to its account
// only once its upstream has accepted it, because anyone can forge what a key claims. Decision 29 has the reasons.

import { BoundedMap, BoundedSet } from '../../core/parts/bounded-map.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { directoryOf, type Env, type LocationVariables } from '../../env.ts';
import { accountSignOf, type AccountSign } from '../../providers/accounts.ts';
import type { KeyAccount } from '../../routing/placement.ts';
import { accountName } from '../../runtime/secrets.ts';
import { logEvent } from '../../runtime/log.ts';
import { steadyClock, EachSecond, within, type Background } from '../../runtime/async.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { Caller, UpstreamKey } from './authenticate.ts';

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
function idOf({ id, accountBy }: Upstream, { fingerprint }: UpstreamKey): string {
  return `${id} ${accountBy} ${fingerprint}`;
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
