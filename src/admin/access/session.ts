import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { SignJWT } from 'jose/jwt/sign';
import { jwtVerify } from 'jose/jwt/verify';
import type { AdminAccess } from '../../contract/rpc/directory-rpc.ts';
import type { Env } from '../../env.ts';
import { readSecret } from '../../runtime/secrets.ts';
import { isSameHost } from '../../runtime/origin.ts';
import type { AdminContext, Actor } from '../context.ts';
import { ProblemError } from '../problem.ts';

const encoder = new TextEncoder();

/** Duration of a session: a working day. A revoked key ends it sooner. */
const SESSION_S = 8 * 3_600;

const COOKIE = 'headgate_session';

/** Header that a change by cookie requires, because no form and no other site can send it. */
const OWN_HEADER = 'headgate-admin';

/** An actor with a valid token, and a digest that changes with the token. */
export interface SignedInActor extends Pick<Actor, 'actor' | 'role'> {
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
export async function readSession(
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
export function requireSameSite(context: AdminContext): void {
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
