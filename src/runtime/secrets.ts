import type { Env } from '../env.ts';
import type { GroupConfig } from '../contract/config/config.ts';
import { memberIdOf } from '../contract/config/members.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { BoundedMap } from '../core/parts/bounded-map.ts';

/**
 * Secrets: as the Worker reads them, and the digests that stand for them.
 *
 * Secrets come from files, pipes and forms, which add line breaks and spaces at the ends. Those are removed. White
 * space or control characters inside mean that something else was pasted, such as two keys. Such a secret is rejected
 * as if it were not set.
 */

const SECRET_NAMES = /^(?:ADMIN_TOKEN|METRICS_TOKEN|(?:UPSTREAM|WEBHOOK)_[A-Z0-9_]+)$/;

/** White space, control characters, and characters of no width. */
const UNFIT = /[\s\p{Cc}\p{Cf}\p{Z}]/u;
const UNFIT_ENDS = /^[\s\p{Cc}\p{Cf}\p{Z}]+|[\s\p{Cc}\p{Cf}\p{Z}]+$/gu;

/** Matches nearly all secrets, which need no cleaning. */
const PLAIN = /^[\x21-\x7e]+$/;

/** Why a secret is unusable, as the end of a sentence that names it. */
export type SecretFault = 'is not set' | 'has white space or control characters inside';

type Variables = Readonly<Record<string, unknown>>;

type SecretRead =
  | { readonly value: string; readonly fault: null }
  | { readonly value: null; readonly fault: SecretFault };

/** Cleans a secret as it was entered. An empty one, which forms allow, counts as not set. */
export function cleanSecret(given: unknown): SecretRead {
  if (typeof given !== 'string') return { value: null, fault: 'is not set' };
  if (PLAIN.test(given)) return { value: given, fault: null };
  const value = given.replace(UNFIT_ENDS, '');
  if (value === '') return { value: null, fault: 'is not set' };
  if (!UNFIT.test(value)) return { value, fault: null };
  return { value: null, fault: 'has white space or control characters inside' };
}

/** Returns the Worker secret of a name. Returns null if it is not set or rejected. `secretFault` returns the reason. */
export function readSecret(env: object, name: string): string | null {
  return cleanSecret((env as Variables)[name]).value;
}

/** Returns why the secret of a name is unusable, or null if it is usable. */
export function secretFault(env: object, name: string): SecretFault | null {
  return cleanSecret((env as Variables)[name]).fault;
}

interface FaultySecret {
  readonly secret: string;
  readonly fault: SecretFault;
}

/** Lists the secrets that are set but rejected. */
export function refusedSecrets(env: object): FaultySecret[] {
  return Object.keys(env).flatMap((secret) => {
    const fault = SECRET_NAMES.test(secret) ? secretFault(env, secret) : null;
    return fault === null || fault === 'is not set' ? [] : [{ secret, fault }];
  });
}

/** Lists the upstreams whose secret is not set or rejected. All their calls are rejected. */
export function withoutSecret(
  env: object,
  upstreams: Iterable<Upstream>,
): (FaultySecret & { readonly id: string })[] {
  return [...upstreams].flatMap(({ id, secret }) => {
    const fault = secret === null ? null : secretFault(env, secret);
    return secret === null || fault === null ? [] : [{ id, secret, fault }];
  });
}

/** Lists the enabled members whose own secret is not set or rejected. They receive no calls. */
export function membersWithoutSecret(
  env: object,
  groups: readonly GroupConfig[],
): (FaultySecret & { readonly group: string; readonly member: string })[] {
  return groups.flatMap(({ name, members }) =>
    members.flatMap((member) => {
      const { secret, enabled } = member;
      const fault = !enabled || secret === undefined ? null : secretFault(env, secret);
      if (secret === undefined || fault === null) return [];
      return [{ group: name, member: memberIdOf(member), secret, fault }];
    }),
  );
}

/** How to set a secret: the command, and the step after it. */
interface SettingHint {
  readonly command: string;
  readonly afterwards: string;
}

/** Hosts at which `wrangler dev` serves. A deployed Worker has none of them. */
const LOCAL_URL = /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?:[:/?]|$)/;

type RuntimeName = 'serve' | 'wrangler dev' | 'cloudflare';

/** Only Headgate's own server sets a boot id. */
function runtimeOf({ BOOT_ID: bootId }: Pick<Env, 'BOOT_ID'>, url: string): RuntimeName {
  if (bootId !== undefined) return 'serve';
  return LOCAL_URL.test(url) ? 'wrangler dev' : 'cloudflare';
}

/** Returns how to set a secret where this Worker runs. `url` is the address of the request. */
export function settingHint(env: Pick<Env, 'BOOT_ID'>, name: string, url: string): SettingHint {
  switch (runtimeOf(env, url)) {
    case 'cloudflare':
      return {
        command: `npx wrangler secret put ${name}`,
        afterwards: 'The command prompts for the value, which takes effect at once.',
      };
    case 'wrangler dev':
      return {
        command: `echo "${name}='…'" >> .dev.vars`,
        afterwards:
          'Run it in the folder of wrangler.toml, then restart npm run dev or wrangler dev.',
      };
    case 'serve':
      return {
        command: `export ${name}='…'`,
        afterwards: 'Set it in the environment that starts Headgate, then restart Headgate.',
      };
  }
}

/** Returns how to set a secret where this Worker runs, as one line for an operator. */
export function howToSet(env: Pick<Env, 'BOOT_ID'>, name: string, url: string): string {
  const { command } = settingHint(env, name, url);
  switch (runtimeOf(env, url)) {
    case 'cloudflare':
      return command;
    case 'wrangler dev':
      return `${command} in the folder of wrangler.toml, then restart npm run dev or wrangler dev`;
    case 'serve':
      return `${command} in the environment that starts Headgate, then restart it`;
  }
}

export function whereIsAdminToken(env: Pick<Env, 'BOOT_ID'>, url: string): string {
  switch (runtimeOf(env, url)) {
    case 'cloudflare':
      return `to replace it: ${settingHint(env, 'ADMIN_TOKEN', url).command}`;
    case 'wrangler dev':
      return 'the one in .dev.vars, or the one that npm run dev printed';
    case 'serve':
      return 'the one that Headgate was started with, or the one that headgate serve --show-token prints';
  }
}

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
