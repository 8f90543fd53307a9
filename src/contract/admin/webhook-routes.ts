import * as z from 'zod';
import { webhookSchema } from '../config/webhook.ts';
import { changedSchema } from './answer-schemas.ts';
import { routes } from './route.ts';

/** A receiver of warnings as it is shown: its address may be a credential, so only its host is. */
const shownWebhookSchema = webhookSchema.omit({ url: true }).extend({
  address: z.string().describe('Address without all behind its host, which may be a credential.'),
  is_secret_set: z
    .boolean()
    .nullable()
    .describe('Whether the secret can be used. Null: none is named.'),
  secret_fault: z
    .string()
    .nullable()
    .describe('Why the secret cannot be used, as in "the secret X is not set". Null: it can be.'),
});

const webhookDocumentSchema = webhookSchema
  .extend({
    url: webhookSchema.shape.url
      .optional()
      .describe('Address that warnings are sent to, with https. Absent: as it is.'),
  })
  .describe('A receiver of warnings. What is left out has its default, but for the address.');

const shown = shownWebhookSchema.nullable().describe('The receiver. Null: there is none.');

/** The receiver of warnings, and a test of whether they arrive there. */
export const WEBHOOK_ROUTES = routes({
  getWebhook: {
    tag: 'configuration',
    summary: 'Where warnings are sent to',
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
    summary: 'Sets where warnings are sent to',
    description: 'Of a `url` all but the host is shown nowhere again, but in `GET /config`.',
    role: 'admin',
    body: webhookDocumentSchema,
    hasEtag: true,
    takesIfMatch: true,
    answers: { 200: changedSchema.extend({ webhook: shown }) },
  },
  deleteWebhook: {
    tag: 'configuration',
    summary: 'Sends warnings nowhere but to the log',
    role: 'admin',
    hasEtag: true,
    takesIfMatch: true,
    answers: { 200: changedSchema },
  },
  testWebhook: {
    tag: 'configuration',
    summary: 'Sends a test to where warnings are sent to, once',
    description:
      'Goes to the configured address alone, follows no redirect, and waits ten seconds at the most.',
    role: 'admin',
    answers: {
      200: z.object({
        delivered: z.boolean().describe('Whether the receiver answered with a 2xx.'),
        status: z.int().nullable().describe('Status of its answer. Null: there was none.'),
        answer: z.string().describe('The first 300 characters of its answer.'),
        error: z
          .string()
          .nullable()
          .describe('Why it was not delivered, without the address. Null: it was.'),
        took_ms: z.number().meta({ description: 'Time until then.', unit: 'ms' }),
      }),
    },
    problems: [409],
  },
});
