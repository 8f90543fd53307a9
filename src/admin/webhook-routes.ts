import type { WebhookConfig } from '../contract/config/config.ts';
import { secretFault } from '../runtime/secrets.ts';
import { testWebhook, webhookDependencies } from '../runtime/webhook.ts';
import { changeConfig, note } from './change.ts';
import type { AdminApp } from './context.ts';
import { ProblemError } from './problem.ts';
import { invalid, serve } from './serve.ts';
import { currentSnapshot } from './snapshot.ts';

export function addWebhookRoutes(app: AdminApp): void {
  serve(app, 'getWebhook', async ({ context }) => {
    const { version, config } = await currentSnapshot(context.env);
    return { status: 200, body: { version, webhook: shown(context.env, config.webhook) }, version };
  });

  serve(app, 'putWebhook', async ({ context, body }) => {
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
  });

  serve(app, 'deleteWebhook', async ({ context }) => {
    const { version, warnings } = await changeConfig(context, {
      action: 'webhook: delete',
      next: (present) => ({ ...present, webhook: null }),
    });
    return { status: 200, body: { version, warnings }, version };
  });

  serve(app, 'testWebhook', async ({ context }) => {
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
  });
}

/** Returns a receiver without the part of its address that may be a credential. */
function shown(env: object, webhook: WebhookConfig | null) {
  if (webhook === null) return null;
  const { url, secret, format, kinds } = webhook;
  const secret_fault = secret === null ? null : secretFault(env, secret);
  const is_secret_set = secret === null ? null : secret_fault === null;
  const address = `${new URL(url).origin}/(hidden)`;
  return { address, secret, format, kinds, is_secret_set, secret_fault };
}
