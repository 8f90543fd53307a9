import * as z from 'zod';
import { webhookSchema } from '../config/webhook.ts';
import { changedSchema } from './answer-schemas.ts';
import { routes } from './route.ts';

/** A receiver of warnings as shown. Its address may be a credential, so only the host is included. */
const shownWebhookSchema = webhookSchema.omit({ url: true }).extend({
  address: z.string().describe('Scheme and host of the address. The rest may be a credential.'),
  is_secret_set: z
    .boolean()
    .nullable()
    .describe('Whether the secret is usable. null if none is named.'),
  secret_fault: z
    .string()
    .nullable()
    .describe('Why the secret is unusable, such as "is not set". null if it is usable.'),
});

const webhookDocumentSchema = webhookSchema
  .extend({
    url: webhookSchema.shape.url
      .optional()
      .describe('Address of the receiver, with https. Absent means the current address.'),
  })
  .describe('A receiver of warnings. Omitted fields have their defaults, except the address.');

const shown = shownWebhookSchema.nullable().describe('The receiver. null if there is none.');

export const WEBHOOK_ROUTES = routes({
  getWebhook: {
    tag: 'configuration',
    summary: 'Get the receiver of warnings',
    role: 'viewer',
    hasEtag: true,
    answers: {
      200: z.object({
        version: changedSchema.shape.version,
        webhook: shown,
      }),
    },
  },
  putWebhook: {
    tag: 'configuration',
    summary: 'Set the receiver of warnings',
    description:
      'Only `GET /config` returns the whole `url`. All other responses show only its host.',
    role: 'admin',
    body: webhookDocumentSchema,
    hasEtag: true,
    takesIfMatch: true,
    answers: { 200: changedSchema.extend({ webhook: shown }) },
  },
  deleteWebhook: {
    tag: 'configuration',
    summary: 'Remove the receiver of warnings',
    description: 'Warnings are still logged.',
    role: 'admin',
    hasEtag: true,
    takesIfMatch: true,
    answers: { 200: changedSchema },
  },
  testWebhook: {
    tag: 'configuration',
    summary: 'Send a test message to the receiver of warnings',
    description:
      'Sends one message to the configured address. Does not follow redirects, and waits at most ten seconds.',
    role: 'admin',
    answers: {
      200: z.object({
        delivered: z.boolean().describe('Whether the receiver returned a 2xx status.'),
        status: z.int().nullable().describe('Status of the response. null if there was none.'),
        answer: z.string().describe('First 300 characters of the response.'),
        error: z
          .string()
          .nullable()
          .describe('Why the delivery failed, without the address. null if it succeeded.'),
        took_ms: z.number().meta({ description: 'Duration of the delivery.', unit: 'ms' }),
      }),
    },
    problems: [409],
  },
});
