import { BoundedMap } from '../core/parts/bounded-map.ts';

/** Maximum cached digests. They are cached because hashing costs more than everything else that a small call does. */
const CACHED_MAX = 1_000;

const encoder = new TextEncoder();

/** Caches results by their input. The oldest entries are dropped first. */
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

/** Returns `sha256:<hex>`. The result is not cached. */
export async function secretHash(secret: string): Promise<string> {
  return `sha256:${toHex(await crypto.subtle.digest('SHA-256', encoder.encode(secret)))}`;
}

/** Also typed where the types of other runtimes are in use, which lack the comparison. */
const subtle: typeof crypto.subtle & {
  timingSafeEqual(left: Uint8Array, right: Uint8Array): boolean;
} = crypto.subtle as never;

/**
 * Compares two hashes of secrets in constant time. Hashes have one length, so timing reveals neither the length of a
 * secret nor the position of the first difference.
 */
export function isSameHash(a: string, b: string): boolean {
  const [left, right] = [encoder.encode(a), encoder.encode(b)];
  return left.byteLength === right.byteLength && subtle.timingSafeEqual(left, right);
}

/** Returns the hash of a gateway key as the configuration lists it. The result is cached. */
export const gatewayKeyHash = createCache(secretHash);

/**
 * Returns 96 bits of an HMAC-SHA-256 as hexadecimal. The first line of the input is the key in base64, and the rest is
 * the text.
 */
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
export const ACCOUNT_PREFIX = 'acct_';

const accountNameOf = createCache(async (text) => `${ACCOUNT_PREFIX}${await keyedHash(text)}`);
const madeHashOf = createCache(async (text) => `m:${await keyedHash(text)}`);
const sessionHashOf = createCache(keyedHash);
const partitionHashOf = createCache(async (text) => `h:${await keyedHash(text)}`);

/**
 * Returns the fingerprint that replaces a provider key wherever Headgate stores or shows it. It is an HMAC-SHA-256
 * under the deployment's own key, so a list of keys alone does not identify a fingerprint.
 */
export function fingerprint(fingerprintKey: string, credential: string): Promise<string> {
  return fingerprintOf(`${fingerprintKey}\n${credential}`);
}

/** Returns the keyed hash of a call's user or session. Callers choose these texts, so they have their own cache. */
export function sessionHash(fingerprintKey: string, session: string): Promise<string> {
  return sessionHashOf(`${fingerprintKey}\nsession ${session}`);
}

/** Returns the keyed hash of a caller's value, for the name of a pool in a jurisdiction. */
export function partitionHash(fingerprintKey: string, value: string): Promise<string> {
  return partitionHashOf(`${fingerprintKey}\npartition ${value}`);
}

/** Returns the keyed hash that names a provider's account, because the account's id may reveal its owner. */
export function accountName(fingerprintKey: string, account: string): Promise<string> {
  return accountNameOf(`${fingerprintKey}\naccount ${account}`);
}

/** Returns the keyed hash of an object that a provider made, or of its caller. */
export function madeHash(fingerprintKey: string, made: string): Promise<string> {
  return madeHashOf(`${fingerprintKey}\nmade ${made}`);
}
