import * as z from 'zod';
import {
  adminKeyInfoSchema,
  changedKeySchema,
  changedSchema,
  keySchema,
  newAdminKeySchema,
  newKeySchema,
  pageOf,
  revokedKeySchema,
  sessionSchema,
} from './answer-schemas.ts';
import { keylessCallerSchema } from '../keyless.ts';
import { mergePatchSchema, pageQuery } from './group-routes.ts';
import { adminKeyDocumentSchema, keyDocumentSchema } from './key-documents.ts';
import { routes } from './route.ts';

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

export const KEY_ROUTES = routes({
  listKeys: {
    tag: 'keys',
    summary: 'List gateway keys by id, without their hashes',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('keys', keySchema) },
    hasEtag: true,
  },
  listKeyless: {
    tag: 'keys',
    summary: 'List callers without a gateway key that were served within the last hour',
    description:
      'Lists them by upstream and by the fingerprint of their provider key, so that you can move them to gateway keys one by one. Counts appear within about a minute. The request queries only the directory.',
    role: 'viewer',
    answers: { 200: keylessSchema },
  },
  createKey: {
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
  },
  getKey: {
    tag: 'keys',
    summary: 'Get a gateway key',
    role: 'viewer',
    params: keyParams,
    answers: { 200: keySchema },
    hasEtag: true,
    problems: [404],
  },
  patchKey: {
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
  },
  deleteKey: {
    tag: 'keys',
    summary: 'Delete a gateway key',
    role: 'admin',
    params: keyParams,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404, 409],
  },
  rotateKey: {
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
  },
  revokeKey: {
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
  },
});

export const ACCESS_ROUTES = routes({
  getSession: {
    tag: 'access',
    summary: 'Get the authenticated actor and its role',
    role: 'viewer',
    answers: { 200: sessionSchema },
  },
  signIn: {
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
  },
  signOut: {
    tag: 'access',
    summary: 'Sign out, and delete the cookie',
    role: 'open',
    answers: { 200: z.object({ signed_out: z.literal(true).describe('The cookie was deleted.') }) },
  },
  listAdminKeys: {
    tag: 'access',
    summary: 'List admin keys by id',
    role: 'admin',
    query: pageQuery,
    answers: { 200: pageOf('admin_keys', adminKeyInfoSchema) },
    hasEtag: true,
  },
  createAdminKey: {
    tag: 'access',
    summary: 'Create an admin key',
    description: 'The key is shown only once.',
    role: 'admin',
    body: adminKeyDocumentSchema,
    answers: { 201: newAdminKeySchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [409],
  },
  deleteAdminKey: {
    tag: 'access',
    summary: 'Delete an admin key, and end its sessions',
    role: 'admin',
    params: keyParams,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
});
