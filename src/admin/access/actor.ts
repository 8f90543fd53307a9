import { ADMIN_ROLES, TOKEN_ACTOR, type AdminRole } from '../../contract/config/keys.ts';
import type { AdminKeyConfig } from '../../contract/config/config.ts';
import type { AdminAccess } from '../../contract/rpc/directory-rpc.ts';
import { directoryOf, type Env } from '../../env.ts';
import {
  cleanSecret,
  howToSet,
  readSecret,
  secretFault,
  settingHint,
} from '../../runtime/secrets.ts';
import type { AdminContext, Actor } from '../context.ts';
import { ProblemError } from '../problem.ts';
import { isSameHash, secretHash } from '../../runtime/digests.ts';
import { readAccess } from './cloudflare-access.ts';
import { refuseBlocked, slowDown } from './attempts.ts';
import { readSession, requireSameSite, type SignedInActor } from './session.ts';

/** Finds out who asks, and refuses who may not. Without an `ADMIN_TOKEN` everything is closed. */
export async function requireRole(context: AdminContext, needed: AdminRole): Promise<Actor> {
  requireOpen(context);
  const who = await identify(context);
  if (ADMIN_ROLES.indexOf(who.role) < ADMIN_ROLES.indexOf(needed)) {
    throw new ProblemError(403, `This needs the role ${needed}; ${who.actor} has ${who.role}.`);
  }
  return who;
}

/** Refuses everybody where no `ADMIN_TOKEN` is set, and says how to set it. */
export function requireOpen({ env, req: { url } }: AdminContext): void {
  const fault = secretFault(env, 'ADMIN_TOKEN');
  if (fault === null) return;
  throw new ProblemError(
    403,
    `The secret ADMIN_TOKEN ${fault}, so the admin routes are closed. Set it: ${howToSet(env, 'ADMIN_TOKEN', url)}`,
    { way: { fault, ...settingHint(env, 'ADMIN_TOKEN', url) } },
  );
}

/** Checks a token that somebody gives. Failures are slowed down. */
export async function checkToken(context: AdminContext, given: string): Promise<SignedInActor> {
  refuseBlocked(context);
  // Forms and files add white space at its ends, as they do to the secret itself.
  const { value } = cleanSecret(given);
  const known = value === null ? null : await knownByToken(context.env, value);
  if (known !== null) return known;
  await slowDown(context);
  throw unknown('The token is not known here.');
}

/** Lists everybody whose token may be right now: the one of the environment, and the admin keys. */
async function everybody(env: Env, access: AdminAccess): Promise<SignedInActor[]> {
  const keys = access.adminKeys.filter(isLive);
  return [
    ...(await holderOfToken(env)),
    ...keys.map(({ id, role, hash }) => ({ actor: id, role, tokenHash: hash })),
  ];
}

/** Knows the holder of `ADMIN_TOKEN`; nobody, where it is not set: an empty token would be that of everybody. */
async function holderOfToken(env: Env): Promise<SignedInActor[]> {
  const token = readSecret(env, 'ADMIN_TOKEN');
  if (token === null) return [];
  return [{ actor: TOKEN_ACTOR, role: 'admin', tokenHash: await secretHash(token) }];
}

/** Tells whether a key of the admin API opens anything still. */
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
  const session = await readSession(context, access, await everybody(context.env, access));
  if (session !== null) {
    requireSameSite(context);
    return session;
  }
  const user = await readAccess(context);
  if (user === null) throw unknown('Send `Authorization: Bearer <ADMIN_TOKEN>`, or sign in.');
  if (user.isBrowser) requireSameSite(context);
  return user;
}

async function knownByToken(env: Env, given: string): Promise<SignedInActor | null> {
  const hash = await secretHash(given);
  // The token of the environment needs no directory, so that it works while that is out of reach.
  const [holder] = await holderOfToken(env);
  if (holder !== undefined && isSameHash(hash, holder.tokenHash)) return holder;
  const all = await everybody(env, await directoryOf(env).adminAccess());
  // Every one is looked at, whichever it is, so that the time says nothing.
  return all.filter(({ tokenHash }) => isSameHash(hash, tokenHash))[0] ?? null;
}

function unknown(detail: string): ProblemError {
  return new ProblemError(401, detail, {
    headers: { 'www-authenticate': 'Bearer realm="headgate"' },
  });
}
