import type { Config } from '../../contract/config/config.ts';
import type { FieldError } from '../field-error.ts';
import { isPrivateHost } from './private-address.ts';

/** Finds a receiver of warnings that may not be called: it hears of groups and tenants, as a stranger would. */
export function webhookErrors(
  { webhook }: Config,
  { privateUpstreams }: { readonly privateUpstreams: boolean },
): FieldError[] {
  if (webhook === null || privateUpstreams) return [];
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
