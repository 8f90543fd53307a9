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
    description: 'How long the key before goes on to open; 0: not at all.',
    unit: 'ms',
  }),
});

const keylessSumsSchema = z.object({
  callers: z.int().min(0).describe('Callers. One at two upstreams counts twice.'),
  calls: z.int().min(0).describe('Their served calls.'),
});

const keylessSchema = z.object({
  callers: z.array(keylessCallerSchema).describe('By upstream, callers with the most calls first.'),
  sums: keylessSumsSchema.describe('All of them.'),
  first_key: keylessSumsSchema.describe(
    'Those that would be refused if the first gateway key were created now. 0 if there is a key, or a key refuses no caller.',
  ),
});

/** Keys of callers. */
export const KEY_ROUTES = routes({
  listKeys: {
    tag: 'keys',
    summary: 'Keys of callers, by id, without what they are checked by',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('keys', keySchema) },
    hasEtag: true,
  },
  listKeyless: {
    tag: 'keys',
    summary: 'Callers without a gateway key whose calls were served within the last hour',
    description:
      'By upstream and by the fingerprint of their provider key, so that they can be moved one by one. Counts arrive within about a minute. It asks the directory alone.',
    role: 'viewer',
    answers: { 200: keylessSchema },
  },
  createKey: {
    tag: 'keys',
    summary: 'Makes a key, and shows it this once',
    description: 'Only its SHA-256 is kept. It opens within 5 seconds everywhere.',
    role: 'admin',
    body: keyDocumentSchema,
    answers: { 201: newKeySchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [409],
  },
  getKey: {
    tag: 'keys',
    summary: 'One key',
    role: 'viewer',
    params: keyParams,
    answers: { 200: keySchema },
    hasEtag: true,
    problems: [404],
  },
  patchKey: {
    tag: 'keys',
    summary: 'Changes what a key may do, or when it expires',
    description: 'A JSON merge patch (RFC 7396) of a `KeyDocument`. What it leads to must be one.',
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
    summary: 'Removes a key and forgets it',
    role: 'admin',
    params: keyParams,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404, 409],
  },
  rotateKey: {
    tag: 'keys',
    summary: 'Makes a new key under the same id, and shows it this once',
    description: 'The key before opens for `grace_ms` longer; one before that opens no more.',
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
    summary: 'Takes a key back',
    description:
      'New calls are refused within 5 seconds everywhere, and calls that wait are taken out of their queues. What is in flight goes on to its end.',
    role: 'admin',
    params: keyParams,
    answers: { 200: revokedKeySchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
});

/** Access to the admin API. */
export const ACCESS_ROUTES = routes({
  getSession: {
    tag: 'access',
    summary: 'Who asks, and what they may do',
    role: 'viewer',
    answers: { 200: sessionSchema },
  },
  signIn: {
    tag: 'access',
    summary: 'Signs a browser in with a cookie',
    description:
      'The cookie is HttpOnly and SameSite=Strict. Requests by cookie that change something need the header `headgate-admin: 1` and come from this very origin.',
    role: 'open',
    body: z.strictObject({
      token: z.string().min(1).max(1_000).describe('`ADMIN_TOKEN`, or an admin key.'),
    }),
    answers: { 200: sessionSchema },
    problems: [401, 403, 429],
  },
  signOut: {
    tag: 'access',
    summary: 'Takes the cookie back',
    role: 'open',
    answers: { 200: z.object({ signed_out: z.literal(true).describe('The cookie is gone.') }) },
  },
  listAdminKeys: {
    tag: 'access',
    summary: 'Keys of the admin API, by id',
    role: 'admin',
    query: pageQuery,
    answers: { 200: pageOf('admin_keys', adminKeyInfoSchema) },
    hasEtag: true,
  },
  createAdminKey: {
    tag: 'access',
    summary: 'Makes a key of the admin API, and shows it this once',
    role: 'admin',
    body: adminKeyDocumentSchema,
    answers: { 201: newAdminKeySchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [409],
  },
  deleteAdminKey: {
    tag: 'access',
    summary: 'Removes a key of the admin API, and ends its sessions',
    role: 'admin',
    params: keyParams,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
});
