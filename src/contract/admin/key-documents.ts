import { adminKeySchema, gatewayKeySchema } from '../config/keys.ts';

/** The part of a caller's key that people write; the rest is Headgate's. */
export const keyDocumentSchema = gatewayKeySchema
  .omit({ hash: true, created_at: true, revoked_at: true, previous: true })
  .describe('A key of a caller; whatever is left out has its default.');

/** The part of an admin key that people write. */
export const adminKeyDocumentSchema = adminKeySchema.omit({ hash: true, created_at: true });
