import { adminKeySchema, gatewayKeySchema } from '../config/keys.ts';

/** The part of a gateway key that operators write. Headgate sets the rest. */
export const keyDocumentSchema = gatewayKeySchema
  .omit({ hash: true, created_at: true, revoked_at: true, previous: true })
  .describe('A gateway key. Omitted fields have their defaults.');

/** The part of an admin key that operators write. */
export const adminKeyDocumentSchema = adminKeySchema.omit({ hash: true, created_at: true });
