import { JWKSNoMatchingKey } from 'jose/errors';
import type { JSONWebKeySet } from 'jose';
import { createLocalJWKSet } from 'jose/jwks/local';
import { jwtVerify } from 'jose/jwt/verify';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { SignJWT } from 'jose/jwt/sign';
import { BoundedMap } from '../core/parts/bounded-map.ts';
import { steadyClock, pause, within } from '../runtime/async.ts';
import { directoryOf, type Env } from '../env.ts';
import { addressOf, isOwnAddress, isSameHost } from '../runtime/origin.ts';
import { ADMIN_ROLES, TOKEN_ACTOR, type AdminRole } from '../contract/config/keys.ts';
import { logEvent } from '../runtime/log.ts';
import type { AdminAccess } from '../contract/rpc/directory-rpc.ts';
import {
  readSecret,
  cleanSecret,
  howToSet,
  secretFault,
  settingHint,
  isSameHash,
  secretHash,
} from '../runtime/secrets.ts';
import type { AdminKeyConfig } from '../contract/config/config.ts';
import { ProblemError, type AdminContext, type Actor } from './context.ts';

/** Authenticates a request, and checks its role. */

/** Failed attempts of one address per minute that are not slowed down, because people mistype. */
const FREE = 5;

/** Delay of the responses to further attempts. It doubles each time. */
const DELAY_MS_MIN = 100;
const DELAY_MS_MAX = 2_000;

/** Failed attempts after which an address is blocked, and for how long. The time is short for legitimate users. */
const BLOCKED_FROM = 20;
const BLOCKED_MS = 10_000;

const ADDRESSES_MAX = 1_000;

const blockedUntil = new BoundedMap<string, number>(ADDRESSES_MAX);

interface SignInClient {
  readonly env: Env;
  readonly req: { readonly raw: Request };
}

/** Rejects an address with too many failed attempts, before its token is checked. */
export function refuseBlocked(context: SignInClient): void {
  const until = blockedUntil.get(addressFor(context)) ?? 0;
  const leftMs = until - steadyClock.now();
  if (leftMs <= 0) return;
  const seconds = Math.ceil(leftMs / 1_000);
  throw new ProblemError(429, `Too many failed attempts. Try again in ${seconds} s.`, {
    headers: { 'retry-after': String(seconds) },
  });
}

/** Delays the response to a wrong token. The directory counts failures across isolates. */
export async function slowDown(context: SignInClient): Promise<void> {
  const address = addressFor(context);
  const failures = await directoryOf(context.env).failedAttempt(address);
  if (failures <= FREE) return;
  // A shared address is only delayed, because a block would affect all of its users.
  if (failures >= BLOCKED_FROM && isOwnAddress(context.env, address)) block(address);
  await pause(Math.min(DELAY_MS_MAX, DELAY_MS_MIN * 2 ** (failures - FREE - 1)));
}

function addressFor({ env, req }: SignInClient): string {
  return addressOf(env, req.raw);
}

function block(address: string): void {
  blockedUntil.set(address, steadyClock.now() + BLOCKED_MS);
}

/** Header in which Cloudflare Access identifies the user. */
const HEADER = 'cf-access-jwt-assertion';

/** Time for which keys are cached. They change every six weeks, and the old one is published for another week. */
const KEYS_FRESH_MS = 3_600_000;

/** Minimum time between two lookups for an unknown key, which may be new or forged. */
const KEYS_RETRY_MS = 60_000;
const KEYS_TIMEOUT_MS = 5_000;

type KeySet = ReturnType<typeof createLocalJWKSet>;

/** This isolate's copy of the keys of one team. Plain data only, because requests cannot share promises. */
let cached: {
  readonly team: string;
  readonly keys: JSONWebKeySet;
  readonly atMs: number;
} | null = null;

interface AccessUser extends Actor {
  /** The browser adds the header to all requests, even to those that other sites cause. */
  readonly isBrowser: boolean;
}

/**
 * Returns the user that Cloudflare Access has authenticated. null if Access is not configured, or the request has no
 * valid token for this application.
 */
async function readAccess(context: AdminContext): Promise<AccessUser | null> {
  const { ACCESS_TEAM_DOMAIN: team = '', ACCESS_AUD: audience = '' } = context.env;
  const token = context.req.header(HEADER);
  if (team === '' || audience === '' || token === undefined) return null;
  const origin = `https://${team.replace(/^https:\/\//, '').replace(/\/.*$/, '')}`;
  try {
    const claims = await verified(token, origin, audience);
    if (typeof claims.exp !== 'number') return null;
    const { email, common_name: service } = claims;
    const name = typeof email === 'string' && email !== '' ? email : service;
    if (typeof name !== 'string' || name === '') return null;
    return {
      actor: `access:${name}`,
      role: roleOf(context.env),
      via: 'access',
      expiresAt: new Date(claims.exp * 1_000).toISOString(),
      isBrowser: name === email,
    };
  } catch (error) {
    logEvent('access_refused', { name: error instanceof Error ? error.name : 'unknown' });
    return null;
  }
}

async function verified(token: string, origin: string, audience: string) {
  const check = async (olderThanMs: number) => {
    const { payload } = await jwtVerify(token, await keysOf(origin, olderThanMs), {
      algorithms: ['RS256'],
      issuer: origin,
      audience,
    });
    return payload;
  };
  try {
    return await check(KEYS_FRESH_MS);
  } catch (error) {
    const knownForMs = steadyClock.now() - (cached?.atMs ?? 0);
    if (!(error instanceof JWKSNoMatchingKey) || knownForMs < KEYS_RETRY_MS) throw error;
  }
  return check(KEYS_RETRY_MS);
}

async function keysOf(team: string, freshMs: number): Promise<KeySet> {
  if (cached?.team === team && steadyClock.now() - cached.atMs < freshMs) {
    return createLocalJWKSet(cached.keys);
  }
  const answer = await within(KEYS_TIMEOUT_MS, fetch(`${team}/cdn-cgi/access/certs`));
  if (!answer.ok) throw new Error('The keys of Cloudflare Access could not be read.');
  const keys = (await answer.json()) as JSONWebKeySet;
  // It throws if they are malformed, so that only valid keys are cached.
  const set = createLocalJWKSet(keys);
  cached = { team, keys, atMs: steadyClock.now() };
  return set;
}

/** Returns the role of users of Access: the configured one, or `viewer`. */
function roleOf({ ACCESS_ROLE: role }: Env): AdminRole {
  return ADMIN_ROLES.find((one) => one === role) ?? 'viewer';
}

const encoder = new TextEncoder();

/** Duration of a session: a working day. A revoked key ends it sooner. */
const SESSION_S = 8 * 3_600;

const COOKIE = 'headgate_session';

/** Header that a change by cookie requires, because no form and no other site can send it. */
const OWN_HEADER = 'headgate-admin';

/** An actor with a valid token, and a digest that changes with the token. */
interface SignedInActor extends Pick<Actor, 'actor' | 'role'> {
  readonly tokenHash: string;
}

/**
 * Derives the key that signs sessions from the stored key and `ADMIN_TOKEN`. A copy of the stored data cannot sign
 * sessions, and a new token ends all of them. null if no token is set, which disables the admin routes.
 */
async function signingKey(env: Env, { sessionKey }: AdminAccess) {
  const token = readSecret(env, 'ADMIN_TOKEN');
  if (token === null) return null;
  const material = await crypto.subtle.importKey('raw', encoder.encode(token), 'HKDF', false, [
    'deriveKey',
  ]);
  return crypto.subtle.deriveKey(
    {
      name: 'HKDF',
      hash: 'SHA-256',
      salt: Uint8Array.fromBase64(sessionKey),
      info: encoder.encode('headgate admin session'),
    },
    material,
    { name: 'HMAC', hash: 'SHA-256', length: 256 },
    false,
    ['sign', 'verify'],
  );
}

/** Signs a browser in. The signed cookie contains the actor and the end of the session, but no part of the token. */
export async function openSession(
  context: AdminContext,
  access: AdminAccess,
  known: SignedInActor,
): Promise<Actor> {
  const endsAtS = Math.floor(Date.now() / 1_000) + SESSION_S;
  const claims = { sub: known.actor, for: markOf(known), exp: endsAtS };
  const key = await signingKey(context.env, access);
  if (key === null) {
    throw new ProblemError(
      403,
      'Sign-in is disabled because `ADMIN_TOKEN` is not set. Set it first.',
    );
  }
  const cookie = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .sign(key);
  setCookie(context, COOKIE, cookie, { ...attributes(context), maxAge: SESSION_S });
  const { actor, role } = known;
  return { actor, role, via: 'session', expiresAt: new Date(endsAtS * 1_000).toISOString() };
}

/** Returns the actor of a request's cookie. null if there is none, it has ended, or Headgate did not sign it. */
async function readSession(
  context: AdminContext,
  access: AdminAccess,
  actors: readonly SignedInActor[],
): Promise<Actor | null> {
  const cookie = getCookie(context, COOKIE);
  if (cookie === undefined) return null;
  const key = await signingKey(context.env, access);
  if (key === null) return null;
  try {
    const { payload: claims } = await jwtVerify(cookie, key, { algorithms: ['HS256'] });
    // The cookie is invalid if the token was changed or the key was removed since.
    const known = actors.find((one) => one.actor === claims['sub']);
    if (known === undefined || markOf(known) !== claims['for']) return null;
    const expiresAt = new Date(Number(claims.exp) * 1_000).toISOString();
    return { actor: known.actor, role: known.role, via: 'session', expiresAt };
  } catch {
    return null; // An invalid cookie is ignored.
  }
}

export function closeSession(context: AdminContext): void {
  deleteCookie(context, COOKIE, attributes(context));
}

/**
 * Rejects requests with a cookie that another site caused: every change, and reads with a foreign origin.
 * `SameSite=Strict` blocks other sites, but not other applications on a neighbouring host. These cannot send the header
 * without a preflight, which Headgate does not allow. Pages of configured origins send a token instead.
 */
function requireSameSite(context: AdminContext): void {
  const { method } = context.req;
  const origin = context.req.header('origin');
  if (method === 'GET' || method === 'HEAD') {
    if (origin === undefined || isOwnOrigin(context, origin)) return;
    throw new ProblemError(
      403,
      'Pages of another host cannot use the cookie. Send `Authorization: Bearer …` instead.',
    );
  }
  if (context.req.header(OWN_HEADER) === undefined) {
    throw new ProblemError(
      403,
      `A change by a signed-in browser requires the header \`${OWN_HEADER}: 1\`.`,
    );
  }
  requireOwnOrigin(context, origin ?? '');
}

/** Rejects a page of another host. The scheme is ignored, because a proxy that ends TLS changes it. */
export function requireOwnOrigin(context: AdminContext, origin: string): void {
  if (isOwnOrigin(context, origin)) return;
  throw new ProblemError(
    403,
    'A signed-in browser can make changes only from a page of the same host.',
  );
}

function isOwnOrigin(context: AdminContext, origin: string): boolean {
  return isSameHost(origin, context.req.url);
}

/** Identifies a token without revealing it: the first 64 bits of its digest. */
function markOf({ tokenHash }: SignedInActor): string {
  return tokenHash.slice('sha256:'.length, 'sha256:'.length + 16);
}

function attributes(context: AdminContext) {
  const { protocol, hostname } = new URL(context.req.url);
  const isLocal = protocol === 'http:' && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname);
  return { path: '/admin', httpOnly: true, sameSite: 'Strict', secure: !isLocal } as const;
}

/** Authenticates a request, and checks its role. Without `ADMIN_TOKEN`, all admin routes are disabled. */
export async function requireRole(context: AdminContext, needed: AdminRole): Promise<Actor> {
  requireOpen(context);
  const who = await identify(context);
  if (ADMIN_ROLES.indexOf(who.role) < ADMIN_ROLES.indexOf(needed)) {
    throw new ProblemError(
      403,
      `This request requires the role \`${needed}\`. \`${who.actor}\` has the role \`${who.role}\`.`,
    );
  }
  return who;
}

/** Throws if `ADMIN_TOKEN` is not set, and describes how to set it. */
export function requireOpen({ env, req: { url } }: AdminContext): void {
  const fault = secretFault(env, 'ADMIN_TOKEN');
  if (fault === null) return;
  throw new ProblemError(
    403,
    `The secret \`ADMIN_TOKEN\` ${fault}, so the admin routes are disabled. Set it: ${howToSet(env, 'ADMIN_TOKEN', url)}`,
    { way: { fault, ...settingHint(env, 'ADMIN_TOKEN', url) } },
  );
}

/** Checks a token. Failed attempts are slowed down. */
export async function checkToken(context: AdminContext, given: string): Promise<SignedInActor> {
  refuseBlocked(context);
  // Forms and files add white space at the ends, to the token as well as to the secret.
  const { value } = cleanSecret(given);
  const known = value === null ? null : await knownByToken(context.env, value);
  if (known !== null) return known;
  await slowDown(context);
  throw unknown('The token is invalid.');
}

/** Returns the actors with a valid token: that of the environment, and those of the admin keys. */
async function validActors(env: Env, access: AdminAccess): Promise<SignedInActor[]> {
  const keys = access.adminKeys.filter(isLive);
  return [
    ...(await holderOfToken(env)),
    ...keys.map(({ id, role, hash }) => ({ actor: id, role, tokenHash: hash })),
  ];
}

/** Returns the holder of `ADMIN_TOKEN`, or none if it is not set. Otherwise, an empty token would be valid. */
async function holderOfToken(env: Env): Promise<SignedInActor[]> {
  const token = readSecret(env, 'ADMIN_TOKEN');
  if (token === null) return [];
  return [{ actor: TOKEN_ACTOR, role: 'admin', tokenHash: await secretHash(token) }];
}

export function isLive({ expires_at: at }: Pick<AdminKeyConfig, 'expires_at'>): boolean {
  return at === null || Date.parse(at) > Date.now();
}

async function identify(context: AdminContext): Promise<Actor> {
  const header = context.req.header('authorization');
  if (header !== undefined) {
    const given = /^bearer +(.+)$/i.exec(header)?.[1]?.trim() ?? '';
    const { actor, role } = await checkToken(context, given);
    return { actor, role, via: 'token', expiresAt: null };
  }
  const access = await directoryOf(context.env).adminAccess();
  const session = await readSession(context, access, await validActors(context.env, access));
  if (session !== null) {
    requireSameSite(context);
    return session;
  }
  const user = await readAccess(context);
  if (user === null) {
    throw unknown('Missing credentials. Send `Authorization: Bearer <ADMIN_TOKEN>`, or sign in.');
  }
  if (user.isBrowser) requireSameSite(context);
  return user;
}

async function knownByToken(env: Env, given: string): Promise<SignedInActor | null> {
  const hash = await secretHash(given);
  // The token of the environment is checked without the directory, so that it works while that is unreachable.
  const [holder] = await holderOfToken(env);
  if (holder !== undefined && isSameHash(hash, holder.tokenHash)) return holder;
  const all = await validActors(env, await directoryOf(env).adminAccess());
  // All of them are compared, so that the response time does not reveal which one matches.
  return all.filter(({ tokenHash }) => isSameHash(hash, tokenHash))[0] ?? null;
}

function unknown(detail: string): ProblemError {
  return new ProblemError(401, detail, {
    headers: { 'www-authenticate': 'Bearer realm="headgate"' },
  });
}
