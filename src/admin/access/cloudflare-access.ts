import { JWKSNoMatchingKey } from 'jose/errors';
import type { JSONWebKeySet } from 'jose';
import { createLocalJWKSet } from 'jose/jwks/local';
import { jwtVerify } from 'jose/jwt/verify';
import { ADMIN_ROLES, type AdminRole } from '../../contract/config/keys.ts';
import type { Env } from '../../env.ts';
import { logEvent } from '../../runtime/log.ts';
import { steadyClock, within } from '../../runtime/async.ts';
import type { AdminContext, Actor } from '../context.ts';

/** Header in which Cloudflare Access identifies the user. */
const HEADER = 'cf-access-jwt-assertion';

/** Time for which keys are cached. They change every six weeks, and the old one is published for another week. */
const KEYS_FRESH_MS = 3_600_000;

/** Minimum time between two lookups for an unknown key, which may be new or forged. */
const KEYS_RETRY_MS = 60_000;
const KEYS_TIMEOUT_MS = 5_000;

type KeySet = ReturnType<typeof createLocalJWKSet>;

/** This isolate's copy of the keys of one team. Plain data only, because requests cannot share promises. */
let known: {
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
export async function readAccess(context: AdminContext): Promise<AccessUser | null> {
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
    const knownForMs = steadyClock.now() - (known?.atMs ?? 0);
    if (!(error instanceof JWKSNoMatchingKey) || knownForMs < KEYS_RETRY_MS) throw error;
  }
  return check(KEYS_RETRY_MS);
}

async function keysOf(team: string, freshMs: number): Promise<KeySet> {
  if (known?.team === team && steadyClock.now() - known.atMs < freshMs) {
    return createLocalJWKSet(known.keys);
  }
  const answer = await within(KEYS_TIMEOUT_MS, fetch(`${team}/cdn-cgi/access/certs`));
  if (!answer.ok) throw new Error('The keys of Cloudflare Access could not be read.');
  const keys = (await answer.json()) as JSONWebKeySet;
  // It throws if they are malformed, so that only valid keys are cached.
  const set = createLocalJWKSet(keys);
  known = { team, keys, atMs: steadyClock.now() };
  return set;
}

/** Returns the role of users of Access: the configured one, or `viewer`. */
function roleOf({ ACCESS_ROLE: role }: Env): AdminRole {
  return ADMIN_ROLES.find((one) => one === role) ?? 'viewer';
}
