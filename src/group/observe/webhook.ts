import type { WebhookConfig } from '../../contract/config/config.ts';
import { logEvent } from '../../runtime/log.ts';
import type { Warning } from '../../contract/warnings.ts';

/** Milliseconds of the pauses before the tries that follow one that failed. */
const RETRY_PAUSES_MS = [2_000, 10_000, 60_000];

/** How long a receiver may take; one that takes longer has not received it. */
const ANSWER_MS_MAX = 10_000;

/** Everything that a delivery needs of the world. */
export interface WebhookDependencies {
  /** Where warnings go to now; null: nowhere. */
  readonly target: () => Promise<WebhookConfig | null>;
  /** The value of a secret; null: it is not set. */
  readonly secret: (name: string) => string | null;
  /** Whether plain http is allowed, as where Headgate is self-hosted. */
  readonly allowsHttp: boolean;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly pause: (ms: number) => Promise<void>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/**
 * Sends a warning to the configured receiver, as Standard Webhooks (standardwebhooks.com, version 1) has
 * it: the receiver can tell by the signature that it comes from here and is fresh, and by the id that it
 * has it already. Tries four times. Never throws: what cannot be delivered is in the log, and nobody
 * waits for it.
 */
export async function deliverWarning(
  warning: Warning,
  dependencies: WebhookDependencies,
): Promise<void> {
  try {
    const target = await dependencies.target();
    if (target === null) return;
    const failure = await deliver(warning, target, dependencies);
    if (failure !== null) logFailure(warning, failure);
  } catch (error) {
    logFailure(warning, error instanceof Error ? error.name : 'unknown error');
  }
}

function logFailure({ id, kind, group }: Warning, why: string): void {
  logEvent('webhook_failed', { warning: id, kind, group, why });
}

/** Delivers. Null: it was received. Else why not, without the address, which may hold a credential. */
async function deliver(
  warning: Warning,
  { url, secret: name }: WebhookConfig,
  dependencies: WebhookDependencies,
): Promise<string | null> {
  const secret = dependencies.secret(name);
  if (secret === null) return `the secret ${name} is not set`;
  if (!dependencies.allowsHttp && !url.startsWith('https://')) return 'the address is not https';
  const body = bodyOf(warning);
  let failure = '';
  for (const pauseMs of [0, ...RETRY_PAUSES_MS]) {
    if (pauseMs > 0) await dependencies.pause(pauseMs);
    const headers = await signedHeaders(warning.id, body, secret, dependencies.now());
    try {
      const response = await dependencies.fetch(url, {
        method: 'POST',
        headers,
        body,
        // Who forwards it elsewhere would hand the warning to an address that nobody configured.
        redirect: 'manual',
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      });
      await response.body?.cancel();
      if (response.ok) return null;
      failure = `status ${response.status}`;
      if (!isWorthAnother(response.status)) return failure;
    } catch (error) {
      failure = error instanceof Error ? error.name : 'unknown error';
    }
  }
  return failure;
}

function isWorthAnother(status: number): boolean {
  return status >= 500 || status === 408 || status === 425 || status === 429;
}

function bodyOf({ kind, at, id, ...data }: Warning): string {
  return JSON.stringify({ type: `headgate.${kind}`, timestamp: at, data: { id, kind, ...data } });
}

async function signedHeaders(
  id: string,
  body: string,
  secret: string,
  now: number,
): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(now / 1_000));
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', keyBytes(secret), algorithm, false, ['sign']);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  const signature = await crypto.subtle.sign('HMAC', key, signed);
  return {
    'content-type': 'application/json',
    'user-agent': 'headgate',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${btoa(String.fromCharCode(...new Uint8Array(signature)))}`,
  };
}

/** Reads a secret: those of the standard are `whsec_` and base64; any other text is taken as it is. */
function keyBytes(secret: string): Uint8Array {
  if (!secret.startsWith('whsec_')) return new TextEncoder().encode(secret);
  return Uint8Array.from(atob(secret.slice('whsec_'.length)), (char) => char.charCodeAt(0));
}
