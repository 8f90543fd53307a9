import type { Config, WebhookConfig } from '../../contract/config/config.ts';
import type { FieldError } from '../field-error.ts';
import { isPrivateHost } from '../../runtime/private-address.ts';

/** Finds a receiver of warnings that may not be called: it hears of groups and tenants, as a stranger would. */
export function webhookErrors(
  { webhook }: Config,
  { privateUpstreams }: { readonly privateUpstreams: boolean },
): FieldError[] {
  if (webhook === null) return [];
  const where = privateUpstreams ? [] : addressErrors(webhook);
  return [...secretErrors(webhook), ...credentialErrors(webhook), ...where];
}

/** Finds a credential that fetch refuses to send: each delivery would fail. */
function credentialErrors({ url }: WebhookConfig): FieldError[] {
  const { username, password } = new URL(url);
  if (username === '' && password === '') return [];
  const message = 'may not hold a user name or password, with which it cannot be called';
  return [{ path: 'webhook.url', message }];
}

/** Finds that the generic format is not signed: whoever takes it must be able to tell that it comes from here. */
function secretErrors({ format, secret }: WebhookConfig): FieldError[] {
  if (format === 'slack' || secret !== null) return [];
  const message =
    'is needed for the format generic: the name of the secret that signs what is sent, which begins with WEBHOOK_';
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
      message: `leads to a private address (${hostname}), which cannot be reached from here`,
    },
  ];
}
