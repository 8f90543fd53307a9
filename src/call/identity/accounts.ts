// Whose a key is. A key that does not last, or that an account has many of, is one of its account's once its upstream has
// taken it, and never before: what a key claims by itself anybody may write. Decision 29 has the reasons.

import { BoundedMap, BoundedSet } from '../../core/parts/bounded-map.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { directoryOf, type Env, type LocationVariables } from '../../env.ts';
import { accountSignOf, type AccountSign } from '../../providers/accounts.ts';
import type { KeyAccount } from '../../routing/placement.ts';
import { accountName } from '../../runtime/digests.ts';
import { logEvent } from '../../runtime/log.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import { EachSecond } from '../../runtime/each-second.ts';
import { within } from '../../runtime/within.ts';
import type { AuthenticatedCall } from '../call.ts';
import type { UpstreamKey } from './authenticate.ts';

/** Maximum of keys whose accounts this isolate remembers; of others it asks again. */
const KEYS_MAX = 10_000;

/** Maximum of gateway keys whose accounts it remembers. */
const HOMES_MAX = 5_000;

/** Maximum of what a header says that names an account. */
const VALUE_LENGTH_MAX = 200;

/** How long the directory may take to say whose a key is. */
const ANSWER_MS_MAX = 1_000;

/**
 * Maximum of questions to the directory in a second: there is one, and keys can be made up. Whoever is not asked about
 * begins as one that nobody knows.
 */
const ASKED_EACH_SECOND_MAX = 20;

/** The same of news for it: some clients sign a key for every call. What it is not told is found out again. */
const REPORTED_EACH_SECOND_MAX = 5;

/** The account of each key that its upstream has taken. */
const accounts = new BoundedMap<string, string>(KEYS_MAX);

/** The accounts that callers of each gateway key had a key of, and the last one of each. */
const homes = new BoundedSet<string>(HOMES_MAX);
const lastHomes = new BoundedMap<string, string>(HOMES_MAX);

const questions = new EachSecond(ASKED_EACH_SECOND_MAX);
const news = new EachSecond(REPORTED_EACH_SECOND_MAX);

type AccountCall = Pick<AuthenticatedCall, 'caller' | 'table' | 'env' | 'request'>;

/**
 * Tells whose a caller's own key is at an upstream; null: it stands for itself. The operator's keys do, and those of
 * providers that say nothing of accounts.
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
    // Whoever has no gateway key is a stranger, and may write what it likes.
    const said = caller.gatewayKeyId === null ? null : request.headers.get(sign.header);
    if (said === null || said === '') return null;
    const name = await nameOf(fingerprintKey, upstream, sign, said);
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

/** The account of a key that its upstream has taken: whoever has such a key is at home there. */
function verified(call: AccountCall, upstream: Upstream, name: string): KeyAccount {
  noteHome(call, upstream, name);
  return { kind: 'known', name, isProved: true };
}

/** Finds the account of a key that its upstream has taken, whoever asks; null: it is not known. */
export async function accountOfTaken(
  env: Pick<Env, 'DIRECTORY'> & LocationVariables,
  upstream: Upstream,
  key: UpstreamKey,
): Promise<string | null> {
  return knownAccountOf(upstream, key) ?? (await askDirectory(env, idOf(upstream, key)));
}

/** Tells whose a key is without asking anybody; null: it stands for itself, or it is not known here. */
export function knownAccountOf(upstream: Upstream, key: UpstreamKey): string | null {
  return accounts.get(idOf(upstream, key)) ?? null;
}

/**
 * Notes that an upstream has taken a key, by its answer. Returns the account that the key is of; null: there was nothing to
 * find out.
 */
export async function noteTaken(
  call: AuthenticatedCall,
  upstream: Upstream,
  key: UpstreamKey,
  account: KeyAccount | null,
  answer: Response,
): Promise<string | null> {
  if (account === null || (account.kind === 'known' && account.isProved)) return null;
  const sign = signOf(call, upstream, key);
  if (sign === null || sign.by === 'header') return null;
  const { fingerprintKey } = call.table.snapshot;
  // An answer that names none leaves the key by itself, with an account of its own.
  const said =
    sign.by === 'claim'
      ? sign.account
      : (answer.headers.get(sign.header) ?? '').slice(0, VALUE_LENGTH_MAX);
  const name = await nameOf(
    fingerprintKey,
    upstream,
    said === '' ? null : sign,
    said === '' ? (key.fingerprint ?? '') : said,
  );
  const id = idOf(upstream, key);
  accounts.set(id, name);
  noteHome(call, upstream, name);
  notifyDirectory(call, id, name);
  return name;
}

/** Forgets whose a key is that its upstream takes no more. */
export function noteRevoked(call: AuthenticatedCall, upstream: Upstream, key: UpstreamKey): void {
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

/** Names a key at an upstream, as its operator has it told whose it is: another way may find another account. */
function idOf({ id, accountBy }: Upstream, { fingerprint }: UpstreamKey): string {
  return `${id} ${accountBy} ${fingerprint}`;
}

/** Names an account. What is another's at another upstream is not the same there. */
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
 * Finds the account that a key is most likely of which its upstream has not taken yet: one that its caller's gateway key
 * has had a key of. Then it is no stranger's, and its first call need not run beside that account's pool.
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

/** Asks for what another isolate, or an earlier process, has found out; null: nobody has, or it cannot be asked. */
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
  { env, ctx }: AuthenticatedCall,
  id: string,
  account: string | null,
): void {
  if (!news.mayOneMore(steadyClock.now())) return;
  const reported = directoryOf(env).noteAccount(id, account);
  // Lost, it is found out again by whoever needs it.
  ctx.waitUntil(reported.catch(() => {}));
}
