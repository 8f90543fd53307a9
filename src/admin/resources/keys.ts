import * as z from 'zod';
import {
  changedSchema,
  instant,
  mergePatchSchema,
  pageByName,
  pageOf,
  pageQuery,
} from '../shapes.ts';
import { check, route } from '../route.ts';
import { ProblemError, type AdminContext } from '../context.ts';
import { poolsOf } from '../pools.ts';
import {
  keylessCallers,
  lockedOut,
  sumOf,
  changeConfig,
  currentSnapshot,
  inEntry,
  mergePatch,
  requireSameName,
  withEntry,
  type Edit,
} from '../change.ts';
import { plannedSchema, previewOf } from '../change-preview.ts';
import { gatewayKeyHash } from '../../runtime/secrets.ts';
import { poolKey } from '../../routing/pool.ts';
import { KEY_PREFIX } from '../../routing/implied-groups.ts';
import { askPools, readDirectory } from '../../overview/pools.ts';
import { keylessCallerSchema } from '../../contract/reasons.ts';
import { gatewayKeySchema, keyDocumentSchema } from '../../contract/config/keys.ts';
import type { Config, GatewayKeyConfig } from '../../contract/config/config.ts';

export const secretField = z.string().describe('The key itself. It is shown only once.');

const keyFields = gatewayKeySchema.omit({ hash: true, previous: true });

/** A gateway key without its hashes. */
export const keySchema = z
  .object({
    ...keyFields.shape,
    state: z.enum(['active', 'expired', 'revoked']).describe('Whether the key is valid now.'),
    previous_expires_at: instant
      .nullable()
      .describe('Time at which the key before the last rotation expires. null if there is none.'),
  })
  .describe('A gateway key, without its hash.');

export const changedKeySchema = changedSchema.extend({ key: keySchema });

/** The only responses that contain a key. */
export const newKeySchema = changedKeySchema.extend({ secret: secretField });

export const revokedKeySchema = changedKeySchema.extend({
  waiters_cancelled: z
    .int()
    .min(0)
    .describe('Number of queued calls of the key that were removed from their queues.'),
});

export const keyParams = z.strictObject({
  id: z.string().min(1).max(300).describe('Id of the key.'),
});

const rotationSchema = z.strictObject({
  grace_ms: z.int().min(0).max(2_592_000_000).default(86_400_000).meta({
    description: 'How long the old key stays valid. 0 invalidates it immediately.',
    unit: 'ms',
  }),
});

const keylessSumsSchema = z.object({
  callers: z.int().min(0).describe('Number of callers. A caller at two upstreams counts twice.'),
  calls: z.int().min(0).describe('Number of their served calls.'),
});

const keylessSchema = z.object({
  callers: z
    .array(keylessCallerSchema)
    .describe('Callers by upstream, those with the most calls first.'),
  sums: keylessSumsSchema.describe('Sums over all callers.'),
  first_key: keylessSumsSchema.describe(
    'Callers and calls that would be rejected if the first gateway key were created now. 0 if there is a key, or if a key would reject no caller.',
  ),
});

/** Random bytes of a key. 192 bits cannot be guessed, so a plain digest may be stored. */
const SECRET_BYTES = 24;

/** Prefix of gateway keys, which distinguishes them from provider keys in a call. */
const SECRET_PREFIX = 'hg_';

/** A placeholder key, to determine which callers would need a key. */
const FIRST_KEY = gatewayKeySchema.parse({ id: 'first', hash: `sha256:${'0'.repeat(64)}` });

const NO_ACTOR = { callers: 0, calls: 0 };

/** Hash of a key that only a preview creates. */
const NO_HASH = `sha256:${'0'.repeat(64)}`;

export const KEY_ROUTES = {
  listKeys: route('GET /keys', {
    tag: 'keys',
    summary: 'List gateway keys by id, without their hashes',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('keys', keySchema) },
    hasEtag: true,
  }).servedBy(async ({ context, query }) => {
    const { version, config } = await currentSnapshot(context.env);
    const { items, next_cursor } = pageByName(config.keys, ({ id }) => id, query);
    return { status: 200, body: { version, keys: items.map(shown), next_cursor }, version };
  }),

  createKey: route('POST /keys', {
    tag: 'keys',
    summary: 'Create a gateway key',
    description:
      'The key is shown only once, because Headgate stores only its SHA-256. The key is valid within 5 seconds everywhere.',
    role: 'admin',
    body: keyDocumentSchema,
    answers: { 201: newKeySchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [409],
  }).servedBy(async ({ context, body }) => {
    const secret = newSecret(SECRET_PREFIX);
    const made = newKey(body, await gatewayKeyHash(secret));
    const { version, warnings } = await changeConfig(context, newKeyEdit(made));
    return { status: 201, body: { version, warnings, key: shown(made), secret }, version };
  }),

  getKey: route('GET /keys/{id}', {
    tag: 'keys',
    summary: 'Get a gateway key',
    role: 'viewer',
    params: keyParams,
    answers: { 200: keySchema },
    hasEtag: true,
    problems: [404],
  }).servedBy(async ({ context, params }) => {
    const { version, config } = await currentSnapshot(context.env);
    return { status: 200, body: shown(requireKey(config, params.id)), version };
  }),

  patchKey: route('PATCH /keys/{id}', {
    tag: 'keys',
    summary: 'Change the rights or the expiry of a gateway key',
    description:
      'A JSON merge patch (RFC 7396) of a `KeyDocument`. The result must be a valid key.',
    role: 'admin',
    params: keyParams,
    body: mergePatchSchema,
    answers: { 200: changedKeySchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  }).servedBy(async ({ context, params: { id }, body }) => {
    const changed = await changeKey(context, id, 'patch', (key) => patchedKey(key, body));
    return { status: 200, ...changed };
  }),

  deleteKey: route('DELETE /keys/{id}', {
    tag: 'keys',
    summary: 'Delete a gateway key',
    role: 'admin',
    params: keyParams,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404, 409],
  }).servedBy(async ({ context, params }) => {
    const { version, warnings } = await changeConfig(context, {
      action: `key ${params.id}: delete`,
      next: (config) => {
        const gone = requireKey(config, params.id);
        requireAnotherKey(config, gone);
        return { ...config, keys: config.keys.filter((key) => key !== gone) };
      },
    });
    return { status: 200, body: { version, warnings }, version };
  }),

  rotateKey: route('POST /keys/{id}/rotate', {
    tag: 'keys',
    summary: 'Rotate a gateway key',
    description:
      'The new key is shown only once. The old key stays valid for `grace_ms`. Keys before it become invalid.',
    role: 'admin',
    params: keyParams,
    body: rotationSchema,
    isBodyOptional: true,
    answers: { 200: newKeySchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404, 409],
  }).servedBy(async ({ context, params: { id }, body }) => {
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
  }),

  revokeKey: route('POST /keys/{id}/revoke', {
    tag: 'keys',
    summary: 'Revoke a gateway key',
    description:
      'New calls are rejected within 5 seconds everywhere, and queued calls are removed from their queues. Calls in flight finish.',
    role: 'admin',
    params: keyParams,
    answers: { 200: revokedKeySchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  }).servedBy(async ({ context, params: { id } }) => {
    const { body, version } = await changeKey(context, id, 'revoke', revokedKey);
    const waiters_cancelled = await cancelWaitersOf(context, id);
    return { status: 200, body: { ...body, waiters_cancelled }, version };
  }),

  previewKey: route('POST /keys/{id}/preview', {
    tag: 'keys',
    summary: 'Preview the creation, change or revocation of a gateway key',
    description:
      'The body is that of `PATCH /keys/{id}`. If there is no such key, it is that of `POST /keys`. With `as=revoke`, it is ignored.',
    role: 'admin',
    params: keyParams,
    query: z.strictObject({
      as: z
        .enum(['patch', 'revoke'])
        .default('patch')
        .describe(
          '`patch`: create or change the key. `revoke`: make it invalid, by revoking or deleting it, or by rotating it without a grace period.',
        ),
    }),
    body: mergePatchSchema,
    isBodyOptional: true,
    answers: { 200: plannedSchema },
    hasEtag: true,
  }).servedBy(async ({ context, params: { id }, query, body }) => {
    const { config } = await currentSnapshot(context.env);
    return previewOf(context, keyPreviewEdit(id, query.as, body, config));
  }),

  listKeyless: route('GET /keyless-callers', {
    tag: 'keys',
    summary: 'List callers without a gateway key that were served within the last hour',
    description:
      'Lists them by upstream and by the fingerprint of their provider key, so that you can move them to gateway keys one by one. Counts appear within about a minute. The request queries only the directory.',
    role: 'viewer',
    answers: { 200: keylessSchema },
  }).servedBy(async ({ context }) => {
    const { env } = context;
    const [{ config }, callers] = await Promise.all([currentSnapshot(env), keylessCallers(env)]);
    const withKey = { ...config, keys: [...config.keys, FIRST_KEY] };
    const body = {
      callers: [...callers],
      sums: sumOf(callers),
      first_key: config.keys.length === 0 ? sumOf(lockedOut(callers, config, withKey)) : NO_ACTOR,
    };
    return { status: 200, body };
  }),
};

/** Creates a key with this prefix. It is shown once, and not stored. */
export function newSecret(prefix: string): string {
  return prefix + crypto.getRandomValues(new Uint8Array(SECRET_BYTES)).toHex();
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
    pathOf: inEntry('keys', made.id),
  };
}

function patchedKey(key: GatewayKeyConfig, patch: unknown): GatewayKeyConfig {
  const { hash, created_at, revoked_at, previous, ...document } = key;
  const next = check(keyDocumentSchema, mergePatch(document, patch));
  requireSameName(next, key.id, 'A key');
  return { ...next, hash, created_at, revoked_at, previous };
}

function revokedKey(key: GatewayKeyConfig): GatewayKeyConfig {
  return { ...key, revoked_at: key.revoked_at ?? new Date().toISOString(), previous: null };
}

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
    next: (present) => ({
      ...present,
      keys: withEntry(present.keys, edit(requireKey(present, id))),
    }),
    pathOf: inEntry('keys', id),
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
