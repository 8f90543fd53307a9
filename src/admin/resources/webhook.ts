import * as z from 'zod';
import { changedSchema } from '../shapes.ts';
import { invalid, route } from '../route.ts';
import { ProblemError } from '../context.ts';
import { changeConfig, currentSnapshot, note } from '../change.ts';
import { testWebhook, webhookDependencies } from '../../runtime/webhook.ts';
import { secretFault } from '../../runtime/secrets.ts';
import { webhookSchema, type WebhookConfig } from '../../contract/config/config.ts';

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

const receiver = shownWebhookSchema.nullable().describe('The receiver. null if there is none.');

export const WEBHOOK_ROUTES = {
  getWebhook: route('GET /webhook', {
    tag: 'configuration',
    summary: 'Get the receiver of warnings',
    role: 'viewer',
    hasEtag: true,
    answers: {
      200: z.object({
        version: changedSchema.shape.version,
        webhook: receiver,
      }),
    },
  }).servedBy(async ({ context }) => {
    const { version, config } = await currentSnapshot(context.env);
    return {
      status: 200,
      body: { version, webhook: shown(context.env, config.webhook) },
      version,
    };
  }),

  putWebhook: route('PUT /webhook', {
    tag: 'configuration',
    summary: 'Set the receiver of warnings',
    description:
      'Only `GET /config` returns the whole `url`. All other responses show only its host.',
    role: 'admin',
    body: webhookDocumentSchema,
    hasEtag: true,
    takesIfMatch: true,
    answers: { 200: changedSchema.extend({ webhook: receiver }) },
  }).servedBy(async ({ context, body }) => {
    const { version, config, warnings } = await changeConfig(context, {
      action: 'webhook: put',
      next: (present) => {
        const url = body.url ?? present.webhook?.url;
        if (url === undefined) {
          throw invalid([{ path: 'url', message: 'required, because no webhook is configured' }]);
        }
        return { ...present, webhook: { ...body, url } };
      },
      pathOf: (path) => path.replace(/^webhook\./, ''),
    });
    const webhook = shown(context.env, config.webhook);
    return { status: 200, body: { version, warnings, webhook }, version };
  }),

  deleteWebhook: route('DELETE /webhook', {
    tag: 'configuration',
    summary: 'Remove the receiver of warnings',
    description: 'Warnings are still logged.',
    role: 'admin',
    hasEtag: true,
    takesIfMatch: true,
    answers: { 200: changedSchema },
  }).servedBy(async ({ context }) => {
    const { version, warnings } = await changeConfig(context, {
      action: 'webhook: delete',
      next: (present) => ({ ...present, webhook: null }),
    });
    return { status: 200, body: { version, warnings }, version };
  }),

  testWebhook: route('POST /webhook/test', {
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
  }).servedBy(async ({ context }) => {
    const { config } = await currentSnapshot(context.env);
    const { webhook } = config;
    if (webhook === null) {
      throw new ProblemError(409, 'No webhook is configured. Set one with `PUT /webhook`.');
    }
    await note(context, 'webhook: test');
    const startedAt = Date.now();
    const tested = await testWebhook(webhook, webhookDependencies(context.env));
    const took_ms = Math.max(0, Date.now() - startedAt);
    return { status: 200, body: { delivered: tested.error === null, ...tested, took_ms } };
  }),
};

/** Returns a receiver without the part of its address that may be a credential. */
function shown(env: object, webhook: WebhookConfig | null) {
  if (webhook === null) return null;
  const { url, secret, format, kinds } = webhook;
  const secret_fault = secret === null ? null : secretFault(env, secret);
  const is_secret_set = secret === null ? null : secret_fault === null;
  const address = `${new URL(url).origin}/(hidden)`;
  return { address, secret, format, kinds, is_secret_set, secret_fault };
}
