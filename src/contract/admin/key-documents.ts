import { adminKeySchema, gatewayKeySchema } from '../config/config.ts';

/** What is said of a caller's key by people; the rest is Headgate's. */
export const keyDocumentSchema = gatewayKeySchema.omit({
  hash: true,
  created_at: true,
  revoked_at: true,
  previous: true,
});

/** What is said of an admin key by people. */
export const adminKeyDocumentSchema = adminKeySchema.omit({ hash: true, created_at: true });
