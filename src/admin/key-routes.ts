import type * as z from 'zod';
import type { Config, GatewayKeyConfig } from '../contract/config/config.ts';
import { gatewayKeySchema } from '../contract/config/keys.ts';
import { keyDocumentSchema } from '../contract/admin/key-documents.ts';
import { KEY_PREFIX } from '../routing/key-groups.ts';
import { poolKey } from '../routing/pool.ts';
import { askPools, readDirectory } from '../overview/pools.ts';
import { gatewayKeyHash } from '../runtime/digests.ts';
import { changeConfig, type Edit } from './change.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { keylessCallers, lockedOut, sumOf } from './lockout.ts';
import { mergePatch } from './merge-patch.ts';
import { newSecret } from './new-secret.ts';
import { pageByName } from './pages.ts';
import { poolsOf } from './pools.ts';
import { ProblemError } from './problem.ts';
import { check, invalid, serve } from './serve.ts';
import { currentSnapshot } from './snapshot.ts';

/** Prefix of gateway keys, which distinguishes them from provider keys in a call. */
const SECRET_PREFIX = 'hg_';

/** A placeholder key, to determine which callers would need a key. */
const FIRST_KEY = gatewayKeySchema.parse({ id: 'first', hash: `sha256:${'0'.repeat(64)}` });

const NO_ACTOR = { callers: 0, calls: 0 };

export function addKeyRoutes(app: AdminApp): void {
  serve(app, 'listKeys', async ({ context, query }) => {
    const { version, config } = await currentSnapshot(context.env);
    const { items, next_cursor } = pageByName(config.keys, ({ id }) => id, query);
    return { status: 200, body: { version, keys: items.map(shown), next_cursor }, version };
  });

  serve(app, 'listKeyless', async ({ context }) => {
    const { env } = context;
    const [{ config }, callers] = await Promise.all([currentSnapshot(env), keylessCallers(env)]);
    const withKey = { ...config, keys: [...config.keys, FIRST_KEY] };
    const body = {
      callers: [...callers],
      sums: sumOf(callers),
      first_key: config.keys.length === 0 ? sumOf(lockedOut(callers, config, withKey)) : NO_ACTOR,
    };
    return { status: 200, body };
  });

  serve(app, 'createKey', async ({ context, body }) => {
    const secret = newSecret(SECRET_PREFIX);
    const made = newKey(body, await gatewayKeyHash(secret));
    const { version, warnings } = await changeConfig(context, newKeyEdit(made));
    return { status: 201, body: { version, warnings, key: shown(made), secret }, version };
  });

  serve(app, 'getKey', async ({ context, params }) => {
    const { version, config } = await currentSnapshot(context.env);
    return { status: 200, body: shown(requireKey(config, params.id)), version };
  });

  serve(app, 'patchKey', async ({ context, params: { id }, body }) => {
    const changed = await changeKey(context, id, 'patch', (key) => patchedKey(key, body));
    return { status: 200, ...changed };
  });

  serve(app, 'deleteKey', async ({ context, params }) => {
    const { version, warnings } = await changeConfig(context, {
      action: `key ${params.id}: delete`,
      next: (config) => {
        const gone = requireKey(config, params.id);
        requireAnotherKey(config, gone);
        return { ...config, keys: config.keys.filter((key) => key !== gone) };
      },
    });
    return { status: 200, body: { version, warnings }, version };
  });

  serve(app, 'rotateKey', async ({ context, params: { id }, body }) => {
    const secret = newSecret(SECRET_PREFIX);
    const hash = await gatewayKeyHash(secret);
    const now = Date.now();
    const { body: changed, version } = await changeKey(context, id, 'rotate', (key) => {
      if (key.revoked_at !== null) {
        throw new ProblemError(
          409,
          `Key \`${id}\` was revoked and cannot be rotated. Create a new key.`,
        );
      }
      const until = new Date(now + body.grace_ms).toISOString();
      return gatewayKeySchema.parse({
        ...key,
        hash,
        previous: { hash: key.hash, expires_at: until },
      });
    });
    return { status: 200, body: { ...changed, secret }, version };
  });

  serve(app, 'revokeKey', async ({ context, params: { id } }) => {
    const { body, version } = await changeKey(context, id, 'revoke', revokedKey);
    const waiters_cancelled = await cancelWaitersOf(context, id);
    return { status: 200, body: { ...body, waiters_cancelled }, version };
  });
}

function newKey(document: z.output<typeof keyDocumentSchema>, hash: string): GatewayKeyConfig {
  const created_at = new Date().toISOString();
  return { ...document, hash, created_at, revoked_at: null, previous: null };
}

function newKeyEdit(made: GatewayKeyConfig): Edit {
  return {
    action: `key ${made.id}: create`,
    next: (config) => {
      if (config.keys.some(({ id }) => id === made.id)) {
        throw new ProblemError(409, `A key \`${made.id}\` already exists. Choose another id.`);
      }
      return { ...config, keys: [...config.keys, made] };
    },
    pathOf: inKey(made.id),
  };
}

function patchedKey(key: GatewayKeyConfig, patch: unknown): GatewayKeyConfig {
  const { hash, created_at, revoked_at, previous, ...document } = key;
  const next = check(keyDocumentSchema, mergePatch(document, patch));
  if (next.id !== key.id) {
    const message = `must be \`${key.id}\`, as in the path. A key cannot be renamed`;
    throw invalid([{ path: 'id', message }]);
  }
  return { ...next, hash, created_at, revoked_at, previous };
}

function revokedKey(key: GatewayKeyConfig): GatewayKeyConfig {
  return { ...key, revoked_at: key.revoked_at ?? new Date().toISOString(), previous: null };
}

/** Hash of a key that only a preview creates. */
const NO_HASH = `sha256:${'0'.repeat(64)}`;

/** Creates the edit of a preview: the revocation of the key, a patch of it, or a new key if the id is unknown. */
export function keyPreviewEdit(
  id: string,
  as: 'patch' | 'revoke',
  body: unknown,
  { keys }: Config,
): Edit {
  if (as === 'revoke') return keyEdit(id, 'preview', revokedKey);
  if (keys.some((key) => key.id === id)) {
    return keyEdit(id, 'preview', (key) => patchedKey(key, body));
  }
  return newKeyEdit(newKey(check(keyDocumentSchema, { id, ...Object(body) }), NO_HASH));
}

function keyEdit(
  id: string,
  verb: string,
  edit: (key: GatewayKeyConfig) => GatewayKeyConfig,
): Edit {
  return {
    action: `key ${id}: ${verb}`,
    next: (present) => {
      const key = requireKey(present, id);
      return { ...present, keys: present.keys.with(present.keys.indexOf(key), edit(key)) };
    },
    pathOf: inKey(id),
  };
}

async function changeKey(
  context: AdminContext,
  id: string,
  verb: string,
  edit: (key: GatewayKeyConfig) => GatewayKeyConfig,
) {
  const { version, config, warnings } = await changeConfig(context, keyEdit(id, verb, edit));
  return { body: { version, warnings, key: shown(requireKey(config, id)) }, version };
}

/** Translates paths of the configuration into those of a request about one key. */
function inKey(id: string): (path: string, config: Config) => string {
  return (path, { keys }) => {
    const index = keys.findIndex((key) => key.id === id);
    const prefix = `keys[${index === -1 ? keys.length : index}].`;
    return path.startsWith(prefix) ? path.slice(prefix.length) : path;
  };
}

function requireKey({ keys }: Config, id: string): GatewayKeyConfig {
  const key = keys.find((candidate) => candidate.id === id);
  if (key !== undefined) return key;
  throw new ProblemError(404, `There is no key \`${id}\`.`);
}

/** Rejects the deletion of the last key if callers would then need no key. */
function requireAnotherKey({ keys, require_key: rule }: Config, gone: GatewayKeyConfig): void {
  if (keys.length > 1 || rule !== 'auto') return;
  throw new ProblemError(
    409,
    `\`${gone.id}\` is the only key. Without a key, callers need none and send their provider keys. ` +
      'To close Headgate, revoke the key instead. Otherwise, create another key first, or replace the configuration by one without keys.',
  );
}

/** Returns a key without its hashes. */
function shown({ hash: _hash, previous, ...key }: GatewayKeyConfig) {
  const now = Date.now();
  const isOver = (at: string | null): boolean => at !== null && Date.parse(at) <= now;
  const state = key.revoked_at !== null ? 'revoked' : isOver(key.expires_at) ? 'expired' : 'active';
  const previousAt = previous?.expires_at ?? null;
  return { ...key, state, previous_expires_at: isOver(previousAt) ? null : previousAt } as const;
}

/** Removes queued calls of a key from the queues, so that none starts minutes after the revocation. */
async function cancelWaitersOf(context: AdminContext, id: string): Promise<number> {
  const directory = await readDirectory(context.env);
  const ofKey = poolsOf(directory, KEY_PREFIX + id);
  const all = new Map([...ofKey, ...directory.pools].map((pool) => [poolKey(pool), pool]));
  const pools = [...all.values()];
  const asked = await askPools(context.env, directory.config, pools, async (pool) => {
    const waiters = await pool.waiters();
    // Waiters report their tenant, which is the key unless the group uses a header.
    const own = waiters.filter(({ tenant }) => tenant === id);
    const dismissed = await Promise.all(own.map(({ ticket }) => pool.dismiss(ticket)));
    return dismissed.filter(Boolean).length;
  });
  return asked.reduce((sum, one) => sum + ('answer' in one ? one.answer : 0), 0);
}
