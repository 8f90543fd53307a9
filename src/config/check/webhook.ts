import type { Config, WebhookConfig } from '../../contract/config/config.ts';
import type { FieldError } from '../field-error.ts';
import { isPrivateHost } from '../../runtime/private-address.ts';

/** Finds a receiver that must not be called. It receives names of groups and tenants. */
export function webhookErrors(
  { webhook }: Config,
  { privateUpstreams }: { readonly privateUpstreams: boolean },
): FieldError[] {
  if (webhook === null) return [];
  const where = privateUpstreams ? [] : addressErrors(webhook);
  return [...secretErrors(webhook), ...credentialErrors(webhook), ...where];
}

/** Finds credentials in the URL. `fetch` rejects such a URL, so each delivery would fail. */
function credentialErrors({ url }: WebhookConfig): FieldError[] {
  const { username, password } = new URL(url);
  if (username === '' && password === '') return [];
  const message =
    'must not contain a user name or password, because such a URL cannot be called; remove them';
  return [{ path: 'webhook.url', message }];
}

/** Finds an unsigned webhook in the generic format. Its receiver must be able to verify the sender. */
function secretErrors({ format, secret }: WebhookConfig): FieldError[] {
  if (format === 'slack' || secret !== null) return [];
  const message =
    'is required for the format generic; set the name of the secret that signs deliveries, which begins with WEBHOOK_';
  return [{ path: 'webhook.secret', message }];
}

function addressErrors(webhook: WebhookConfig): FieldError[] {
  const { protocol, hostname } = new URL(webhook.url);
  const path = 'webhook.url';
  if (protocol !== 'https:') return [{ path, message: 'must begin with https://' }];
  if (!isPrivateHost(hostname)) return [];
  return [
    {
      path,
      message: `leads to a private address (${hostname}), which Cloudflare cannot reach; use a public address`,
    },
  ];
}
