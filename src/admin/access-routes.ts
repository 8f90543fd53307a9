import { adminKeySchema } from '../contract/config/keys.ts';
import type { AdminKeyConfig } from '../contract/config/config.ts';
import { directoryOf } from '../env.ts';
import { gatewayKeyHash } from '../runtime/digests.ts';
import { closeSession, openSession, requireOwnOrigin } from './access/session.ts';
import { checkToken, isLive, requireOpen } from './access/actor.ts';
import { changeConfig } from './change.ts';
import type { AdminApp, Actor } from './context.ts';
import { newSecret } from './new-secret.ts';
import { pageByName } from './pages.ts';
import { ProblemError } from './problem.ts';
import { check, serve } from './serve.ts';
import { currentSnapshot } from './snapshot.ts';

/** Prefix of admin keys, which distinguishes them from gateway keys. */
const ADMIN_KEY_PREFIX = 'hga_';

export function addAccessRoutes(app: AdminApp): void {
  serve(app, 'getSession', ({ context }) => ({ status: 200, body: shown(context.get('who')) }));

  serve(app, 'signIn', async ({ context, body }) => {
    requireOpen(context);
    const origin = context.req.header('origin');
    if (origin !== undefined) requireOwnOrigin(context, origin);
    const known = await checkToken(context, body.token);
    const access = await directoryOf(context.env).adminAccess();
    const who = await openSession(context, access, known);
    return { status: 200, body: shown(who) };
  });

  serve(app, 'signOut', ({ context }) => {
    closeSession(context);
    return { status: 200, body: { signed_out: true } };
  });

  serve(app, 'listAdminKeys', async ({ context, query }) => {
    const { version, config } = await currentSnapshot(context.env);
    const { items, next_cursor } = pageByName(config.admin_keys, ({ id }) => id, query);
    return { status: 200, body: { version, admin_keys: items.map(info), next_cursor }, version };
  });

  serve(app, 'createAdminKey', async ({ context, body }) => {
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
      pathOf: (path, { admin_keys }) => path.replace(`admin_keys[${admin_keys.length}].`, ''),
    });
    return { status: 201, body: { version, warnings, admin_key: info(made), secret }, version };
  });

  serve(app, 'deleteAdminKey', async ({ context, params }) => {
    const { version, warnings } = await changeConfig(context, {
      action: `admin key ${params.id}: delete`,
      next: (config) => {
        const rest = config.admin_keys.filter(({ id }) => id !== params.id);
        if (rest.length < config.admin_keys.length) return { ...config, admin_keys: rest };
        throw new ProblemError(404, `There is no admin key \`${params.id}\`.`);
      },
    });
    return { status: 200, body: { version, warnings }, version };
  });
}

function info(key: AdminKeyConfig) {
  const { id, role, created_at, expires_at } = key;
  return { id, role, created_at, expires_at, state: isLive(key) ? 'active' : 'expired' } as const;
}

function shown({ actor, role, via, expiresAt }: Actor) {
  return { actor, role, via, expires_at: expiresAt };
}
