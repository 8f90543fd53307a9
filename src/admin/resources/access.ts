import * as z from 'zod';
import { keyParams, newSecret, secretField } from './keys.ts';
import { changedSchema, instant, pageByName, pageOf, pageQuery } from '../shapes.ts';
import { check, route } from '../route.ts';
import { ProblemError, type Actor } from '../context.ts';
import { changeConfig, currentSnapshot, inEntry } from '../change.ts';
import {
  closeSession,
  openSession,
  requireOwnOrigin,
  checkToken,
  isLive,
  requireOpen,
} from '../access.ts';
import { gatewayKeyHash } from '../../runtime/secrets.ts';
import { directoryOf } from '../../env.ts';
import { ADMIN_ROLES, adminKeyDocumentSchema, adminKeySchema } from '../../contract/config/keys.ts';
import type { AdminKeyConfig } from '../../contract/config/config.ts';

export const adminKeyInfoSchema = z
  .object({
    id: z.string().describe('Name of its holder in the audit log.'),
    role: z.enum(ADMIN_ROLES).describe('Role of its holder.'),
    created_at: instant.nullable().describe('Time of creation. null if it is unknown.'),
    expires_at: instant.nullable().describe('Time at which it expires. null if it never expires.'),
    state: z.enum(['active', 'expired']).describe('Whether the key is valid now.'),
  })
  .describe('A key of the admin API, without its hash.');

export const newAdminKeySchema = changedSchema.extend({
  admin_key: adminKeyInfoSchema,
  secret: secretField,
});

export const sessionSchema = z.object({
  actor: z.string().describe('The authenticated actor, as in the audit log.'),
  role: z.enum(ADMIN_ROLES).describe('Role of the actor.'),
  via: z.enum(['token', 'session', 'access']).describe('How the request was authenticated.'),
  expires_at: instant
    .nullable()
    .describe('Time at which the session ends. null without a session.'),
});

/** Prefix of admin keys, which distinguishes them from gateway keys. */
const ADMIN_KEY_PREFIX = 'hga_';

export const ACCESS_ROUTES = {
  getSession: route('GET /session', {
    tag: 'access',
    summary: 'Get the authenticated actor and its role',
    role: 'viewer',
    answers: { 200: sessionSchema },
  }).servedBy(({ context }) => ({ status: 200, body: shown(context.get('who')) })),

  signIn: route('POST /session', {
    tag: 'access',
    summary: 'Sign a browser in with a cookie',
    description:
      'The cookie is HttpOnly and SameSite=Strict. Requests by cookie that change something must have the header `headgate-admin: 1` and come from the same origin.',
    role: 'open',
    body: z.strictObject({
      token: z.string().min(1).max(1_000).describe('`ADMIN_TOKEN`, or an admin key.'),
    }),
    answers: { 200: sessionSchema },
    problems: [401, 403, 429],
  }).servedBy(async ({ context, body }) => {
    requireOpen(context);
    const origin = context.req.header('origin');
    if (origin !== undefined) requireOwnOrigin(context, origin);
    const known = await checkToken(context, body.token);
    const access = await directoryOf(context.env).adminAccess();
    const who = await openSession(context, access, known);
    return { status: 200, body: shown(who) };
  }),

  signOut: route('DELETE /session', {
    tag: 'access',
    summary: 'Sign out, and delete the cookie',
    role: 'open',
    answers: {
      200: z.object({ signed_out: z.literal(true).describe('The cookie was deleted.') }),
    },
  }).servedBy(({ context }) => {
    closeSession(context);
    return { status: 200, body: { signed_out: true } };
  }),

  listAdminKeys: route('GET /admin-keys', {
    tag: 'access',
    summary: 'List admin keys by id',
    role: 'admin',
    query: pageQuery,
    answers: { 200: pageOf('admin_keys', adminKeyInfoSchema) },
    hasEtag: true,
  }).servedBy(async ({ context, query }) => {
    const { version, config } = await currentSnapshot(context.env);
    const { items, next_cursor } = pageByName(config.admin_keys, ({ id }) => id, query);
    return { status: 200, body: { version, admin_keys: items.map(info), next_cursor }, version };
  }),

  createAdminKey: route('POST /admin-keys', {
    tag: 'access',
    summary: 'Create an admin key',
    description: 'The key is shown only once.',
    role: 'admin',
    body: adminKeyDocumentSchema,
    answers: { 201: newAdminKeySchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [409],
  }).servedBy(async ({ context, body }) => {
    const secret = newSecret(ADMIN_KEY_PREFIX);
    const made = check(adminKeySchema, {
      ...body,
      hash: await gatewayKeyHash(secret),
      created_at: new Date().toISOString(),
    });
    const { version, warnings } = await changeConfig(context, {
      action: `admin key ${made.id}: create`,
      next: (config) => {
        if (config.admin_keys.some(({ id }) => id === made.id)) {
          throw new ProblemError(
            409,
            `An admin key \`${made.id}\` already exists. Choose another id.`,
          );
        }
        return { ...config, admin_keys: [...config.admin_keys, made] };
      },
      pathOf: inEntry('admin_keys', made.id),
    });
    return { status: 201, body: { version, warnings, admin_key: info(made), secret }, version };
  }),

  deleteAdminKey: route('DELETE /admin-keys/{id}', {
    tag: 'access',
    summary: 'Delete an admin key, and end its sessions',
    role: 'admin',
    params: keyParams,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  }).servedBy(async ({ context, params }) => {
    const { version, warnings } = await changeConfig(context, {
      action: `admin key ${params.id}: delete`,
      next: (config) => {
        const rest = config.admin_keys.filter(({ id }) => id !== params.id);
        if (rest.length < config.admin_keys.length) return { ...config, admin_keys: rest };
        throw new ProblemError(404, `There is no admin key \`${params.id}\`.`);
      },
    });
    return { status: 200, body: { version, warnings }, version };
  }),
};

function info(key: AdminKeyConfig) {
  const { id, role, created_at, expires_at } = key;
  return { id, role, created_at, expires_at, state: isLive(key) ? 'active' : 'expired' } as const;
}

function shown({ actor, role, via, expiresAt }: Actor) {
  return { actor, role, via, expires_at: expiresAt };
}
