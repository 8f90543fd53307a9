import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { sign, verify } from 'hono/jwt';
import type { AdminAccess } from '../../contract/rpc/directory-rpc.ts';
import type { Env } from '../../env.ts';
import { readSecret } from '../../runtime/secrets.ts';
import { isSameHost } from '../../runtime/cross-site.ts';
import type { AdminContext, Actor } from '../context.ts';
import { ProblemError } from '../problem.ts';

const encoder = new TextEncoder();

/** How long a browser stays signed in: a working day. A key that is taken back ends it sooner. */
const SESSION_S = 8 * 3_600;

const COOKIE = 'headgate_session';

/** Header that a change by cookie must have: no form and no other site can send it. */
const OWN_HEADER = 'headgate-admin';

/** Somebody whose token is right, and a digest that changes with the token. */
export interface SignedInActor extends Pick<Actor, 'actor' | 'role'> {
  readonly tokenHash: string;
}

/**
 * Derives the key that signs sessions from the stored key and `ADMIN_TOKEN`. A copy of the stored data cannot sign
 * sessions, and a new token ends all of them. Null: no token is set, so the admin routes are closed.
 */
async function signingKey(env: Env, { sessionKey }: AdminAccess): Promise<CryptoKey | null> {
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

/** Signs a browser in: the cookie holds who it is until when, signed, and nothing of the token. */
export async function openSession(
  context: AdminContext,
  access: AdminAccess,
  known: SignedInActor,
): Promise<Actor> {
  const endsAtS = Math.floor(Date.now() / 1_000) + SESSION_S;
  const claims = { sub: known.actor, for: markOf(known), exp: endsAtS };
  const key = await signingKey(context.env, access);
  if (key === null) throw new ProblemError(403, 'Sign-in is disabled. Set ADMIN_TOKEN first.');
  const cookie = await sign(claims, key, 'HS256');
  setCookie(context, COOKIE, cookie, { ...attributes(context), maxAge: SESSION_S });
  const { actor, role } = known;
  return { actor, role, via: 'session', expiresAt: new Date(endsAtS * 1_000).toISOString() };
}

/** Finds out whom the cookie of a request is about. Null: there is none, it has ended, or it was never ours. */
export async function readSession(
  context: AdminContext,
  access: AdminAccess,
  everybody: readonly SignedInActor[],
): Promise<Actor | null> {
  const cookie = getCookie(context, COOKIE);
  if (cookie === undefined) return null;
  const key = await signingKey(context.env, access);
  if (key === null) return null;
  try {
    const claims = await verify(cookie, key, 'HS256');
    // A token that was changed since, or a key that was removed, is nobody's any more.
    const known = everybody.find((one) => one.actor === claims['sub']);
    if (known === undefined || markOf(known) !== claims['for']) return null;
    const expiresAt = new Date(Number(claims.exp) * 1_000).toISOString();
    return { actor: known.actor, role: known.role, via: 'session', expiresAt };
  } catch {
    return null; // whatever is wrong with it: it opens nothing
  }
}

/** Takes the cookie back. */
export function closeSession(context: AdminContext): void {
  deleteCookie(context, COOKIE, attributes(context));
}

/**
 * Refuses what another site made the browser send, with its cookie: a change always, and a read that says so.
 * `SameSite=Strict` keeps other sites out, but not another application on a neighbouring host: those cannot send the header
 * without a preflight, whose answer does not allow it. A page of a configured origin brings a token instead.
 */
export function requireSameSite(context: AdminContext): void {
  const { method } = context.req;
  const origin = context.req.header('origin');
  if (method === 'GET' || method === 'HEAD') {
    if (origin === undefined || isOwnOrigin(context, origin)) return;
    throw new ProblemError(
      403,
      'A page of another host is let in by `Authorization: Bearer …` alone, and by no cookie.',
    );
  }
  if (context.req.header(OWN_HEADER) === undefined) {
    throw new ProblemError(
      403,
      `A change by a browser that is signed in needs the header ${OWN_HEADER}: 1.`,
    );
  }
  requireOwnOrigin(context, origin ?? '');
}

/** Refuses a page of another host. Behind a proxy that ends TLS the scheme is not the browser's. */
export function requireOwnOrigin(context: AdminContext, origin: string): void {
  if (isOwnOrigin(context, origin)) return;
  throw new ProblemError(403, 'A browser may change something only from a page of this very host.');
}

function isOwnOrigin(context: AdminContext, origin: string): boolean {
  return isSameHost(origin, context.req.url);
}

/** Marks a token: changes with it and says nothing of it, the first 64 bits of its digest. */
function markOf({ tokenHash }: SignedInActor): string {
  return tokenHash.slice('sha256:'.length, 'sha256:'.length + 16);
}

function attributes(context: AdminContext) {
  const { protocol, hostname } = new URL(context.req.url);
  const isLocal = protocol === 'http:' && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname);
  return { path: '/admin', httpOnly: true, sameSite: 'Strict', secure: !isLocal } as const;
}
