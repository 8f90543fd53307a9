import { BoundedMap } from '../core/parts/bounded-map.ts';

/** Maximum digests that are kept: hashing costs more than everything else that a small call needs. */
const CACHED_MAX = 1_000;

const encoder = new TextEncoder();

/** Wraps a digest in a bounded memory of results by what they were made of, oldest out first. */
function createCache(
  compute: (text: string) => Promise<string>,
): (text: string) => Promise<string> {
  const cache = new BoundedMap<string, string>(CACHED_MAX);
  return async (text) => {
    const known = cache.get(text);
    if (known !== undefined) return known;
    const digest = await compute(text);
    cache.set(text, digest);
    return digest;
  };
}

function toHex(bytes: ArrayBuffer): string {
  return new Uint8Array(bytes).toHex();
}

/** Hashes a secret by SHA-256, as `sha256:<hex>`. It is remembered nowhere. */
export async function secretHash(secret: string): Promise<string> {
  return `sha256:${toHex(await crypto.subtle.digest('SHA-256', encoder.encode(secret)))}`;
}

/**
 * Compares two hashes of secrets. They have one length, so that neither the length of a secret nor the
 * first difference shows in the time.
 */
export function isSameHash(a: string, b: string): boolean {
  const [left, right] = [encoder.encode(a), encoder.encode(b)];
  return left.byteLength === right.byteLength && crypto.subtle.timingSafeEqual(left, right);
}

/** Hashes a gateway key: the form in which the configuration lists keys, remembered for the calls to come. */
export const gatewayKeyHash = createCache(secretHash);

/** Hashes what stands behind the first line, which is the key in base64: 96 bits of an HMAC-SHA-256. */
async function keyedHash(keyAndText: string): Promise<string> {
  const split = keyAndText.indexOf('\n');
  const key = await crypto.subtle.importKey(
    'raw',
    Uint8Array.fromBase64(keyAndText.slice(0, split)),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['sign'],
  );
  const text = encoder.encode(keyAndText.slice(split + 1));
  return toHex(await crypto.subtle.sign('HMAC', key, text)).slice(0, 24);
}

const fingerprintOf = createCache(async (text) => `fp_${await keyedHash(text)}`);
/** How the names of accounts begin. */
export const ACCOUNT_PREFIX = 'acct_';

const accountNameOf = createCache(async (text) => `${ACCOUNT_PREFIX}${await keyedHash(text)}`);
const madeHashOf = createCache(async (text) => `m:${await keyedHash(text)}`);
const sessionHashOf = createCache(keyedHash);
const partitionHashOf = createCache(async (text) => `h:${await keyedHash(text)}`);

/**
 * Makes what stands for a provider's key wherever Headgate keeps or shows something of it: an HMAC-SHA-256
 * under the deployment's own key, so that it says nothing to somebody who only has a list of keys.
 */
export function fingerprint(fingerprintKey: string, credential: string): Promise<string> {
  return fingerprintOf(`${fingerprintKey}\n${credential}`);
}

/**
 * Makes what stands for the user or session of a call in the same way. Callers choose these texts, so they have a cache of
 * their own.
 */
export function sessionHash(fingerprintKey: string, session: string): Promise<string> {
  return sessionHashOf(`${fingerprintKey}\nsession ${session}`);
}

/** Makes what stands for a value of a caller's in the name of a pool that is in a jurisdiction, in the same way. */
export function partitionHash(fingerprintKey: string, value: string): Promise<string> {
  return partitionHashOf(`${fingerprintKey}\npartition ${value}`);
}

/** Makes what stands for an account of a provider in the same way: its id may tell whose it is. */
export function accountName(fingerprintKey: string, account: string): Promise<string> {
  return accountNameOf(`${fingerprintKey}\naccount ${account}`);
}

/** Makes what stands for an object that a provider made, and for its caller, in the same way. */
export function madeHash(fingerprintKey: string, made: string): Promise<string> {
  return madeHashOf(`${fingerprintKey}\nmade ${made}`);
}
