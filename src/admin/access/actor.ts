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
  isSameHash,
  secretHash,
} from '../../runtime/secrets.ts';
import type { AdminContext, Actor } from '../context.ts';
import { ProblemError } from '../problem.ts';
import { readAccess } from './cloudflare-access.ts';
import { refuseBlocked, slowDown } from './attempts.ts';
import { readSession, requireSameSite, type SignedInActor } from './session.ts';

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
