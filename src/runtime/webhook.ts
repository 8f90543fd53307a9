import { Webhook } from 'standardwebhooks';
import { pause, onTimer } from './async.ts';
import type { WebhookConfig } from '../contract/config/config.ts';
import type { Attention, Warning, WarningKind } from '../contract/attention.ts';
import type { AttentionRule } from '../contract/status-words.ts';
import { directoryOf, type Env } from '../env.ts';
import { logEvent } from './log.ts';
import { readSecret, secretFault } from './secrets.ts';

/** Pauses before the second and later attempts, in milliseconds. */
const RETRY_PAUSES_MS = [2_000, 10_000, 60_000];

/** Time limit for the receiver's answer. A slower delivery counts as failed. */
const ANSWER_MS_MAX = 10_000;

/** Maximum length of the receiver's answer to a test that is read and shown. */
const ANSWER_CHARS_MAX = 300;

/** Maximum length of a name in a Slack line, because callers may make up names. */
const NAME_CHARS_MAX = 200;

export interface WebhookDependencies {
  /** Returns the configured receiver, or null if there is none. */
  readonly target: () => Promise<WebhookConfig | null>;
  /** Returns the value of a secret, or null if it is unusable. */
  readonly secret: (name: string) => string | null;
  /** Returns why the secret of a name is unusable. @default it is not set */
  readonly secretFault?: (name: string) => string | null;
  /** Whether plain http is allowed, as when Headgate is self-hosted. */
  readonly allowsHttp: boolean;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly pause: (ms: number) => Promise<void>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

type WebhookMessage = Omit<Warning, 'kind'> & {
  readonly kind: WarningKind | 'attention' | 'test';
  readonly attention?: Attention;
};

interface FoundEntry {
  readonly id: string;
  readonly at: string;
  readonly entry: Attention;
  readonly cleared_at?: string;
}

/** Rules whose entries a pool's warning already announces. */
const WARNED: ReadonlySet<AttentionRule> = new Set([
  'breaker_open',
  'budget_spent',
  'budget_near',
  'day_limit_spent',
  'egress_refused',
  'quota_exhausted',
  'member_ejected',
  'slots_stuck',
  'queue_growing',
  'invariant_violated',
]);

interface WebhookTestResult {
  /** Status of the answer, or null if there was none. */
  readonly status: number | null;
  readonly answer: string;
  /** Why the delivery failed, without the URL. null means that it succeeded. */
  readonly error: string | null;
}

export function webhookDependencies(env: Env, after = onTimer): WebhookDependencies {
  return {
    target: () => directoryOf(env).webhook(),
    secret: (name) => readSecret(env, name),
    secretFault: (name) => secretFault(env, name),
    allowsHttp: env.PRIVATE_UPSTREAMS === 'allow',
    fetch: (url, init) => fetch(url, init),
    pause: (ms) => pause(ms, after),
    now: () => Date.now(),
  };
}

/**
 * Sends a warning to the configured receiver, as Standard Webhooks (standardwebhooks.com, version 1) specifies. The
 * signature proves the origin and freshness of a message, and its id identifies duplicates. A delivery has four
 * attempts. It never throws: failed deliveries are logged, and no response depends on them.
 */
export async function deliverWarning(
  warning: Warning,
  dependencies: WebhookDependencies,
): Promise<void> {
  try {
    const target = await dependencies.target();
    if (target === null || target.kinds?.includes(warning.kind) === false) return;
    const failure = await deliver(warning, target, dependencies);
    if (failure !== null) logFailure(warning, failure);
  } catch (error) {
    logFailure(warning, error instanceof Error ? error.name : 'unknown error');
  }
}

/** Sends an attention entry or its end, unless a pool's warning announces it. Never throws. */
export async function deliverAttention(
  { id, at, entry, cleared_at: clearedAt }: FoundEntry,
  dependencies: WebhookDependencies,
): Promise<void> {
  const { rule, subject, group, count, says, advice } = entry;
  const message: WebhookMessage = {
    id: clearedAt === undefined ? id : `${id}-over`,
    at: clearedAt ?? at,
    kind: 'attention',
    group: group ?? subject.id,
    partition: null,
    message: clearedAt === undefined ? `${says} ${advice}` : `Resolved: ${says}`,
    figures: count === null ? {} : { count },
    attention: entry,
    ...(clearedAt !== undefined && { cleared_at: clearedAt }),
  };
  try {
    const target = await dependencies.target();
    if (target === null) return;
    const { kinds } = target;
    const isWanted = kinds === null ? !WARNED.has(rule) : kinds.includes('attention');
    if (!isWanted) return;
    const failure = await deliver(message, target, dependencies);
    if (failure !== null) logFailure(message, failure);
  } catch (error) {
    logFailure(message, error instanceof Error ? error.name : 'unknown error');
  }
}

/** Sends one test message and returns the receiver's answer. Never throws. */
export async function testWebhook(
  target: WebhookConfig,
  dependencies: WebhookDependencies,
): Promise<WebhookTestResult> {
  const test: WebhookMessage = {
    id: crypto.randomUUID(),
    at: new Date(dependencies.now()).toISOString(),
    kind: 'test',
    group: 'headgate',
    partition: null,
    message: 'This is a test. Headgate sends its warnings here.',
    figures: {},
  };
  const failed = (error: string): WebhookTestResult => ({ status: null, answer: '', error });
  const refused = reasonNotToSend(target, dependencies);
  if (refused !== null) return failed(refused);
  try {
    const response = await post(test, target, dependencies);
    const { status, ok } = response;
    const answer = await beginningOf(response);
    return { status, answer, error: ok ? null : `status ${status}` };
  } catch (error) {
    return failed(describeFailure(error));
  }
}

/** Describes a failure without the error's message, which may contain the URL. */
function describeFailure(error: unknown): string {
  const name = error instanceof Error ? error.name : 'unknown error';
  if (name !== 'TimeoutError') return `the receiver could not be reached (${name})`;
  return `the receiver did not answer within ${ANSWER_MS_MAX / 1_000} s`;
}

function logFailure({ id, kind, group }: WebhookMessage, why: string): void {
  logEvent('webhook_failed', { warning: id, kind, group, why });
}

/** Delivers a message. Returns null on success, otherwise the reason without the URL, which may hold a credential. */
async function deliver(
  warning: WebhookMessage,
  target: WebhookConfig,
  dependencies: WebhookDependencies,
): Promise<string | null> {
  const refused = reasonNotToSend(target, dependencies);
  if (refused !== null) return refused;
  let failure = '';
  for (const pauseMs of [0, ...RETRY_PAUSES_MS]) {
    if (pauseMs > 0) await dependencies.pause(pauseMs);
    try {
      const response = await post(warning, target, dependencies);
      await response.body?.cancel();
      if (response.ok) return null;
      failure = `status ${response.status}`;
      if (!isRetryable(response.status)) return failure;
    } catch (error) {
      failure = error instanceof Error ? error.name : 'unknown error';
    }
  }
  return failure;
}

function reasonNotToSend(
  { url, secret: name }: WebhookConfig,
  { secret, secretFault: faultOf, allowsHttp }: WebhookDependencies,
): string | null {
  const value = name === null ? null : secret(name);
  if (name !== null && value === null) {
    return `the secret \`${name}\` ${faultOf?.(name) ?? 'is not set'}`;
  }
  if (value !== null && !isUsable(value)) {
    return `the secret \`${name}\` has no valid base64 after \`whsec_\``;
  }
  return allowsHttp || url.startsWith('https://') ? null : 'the URL does not use https';
}

async function post(
  message: WebhookMessage,
  { url, secret: name, format }: WebhookConfig,
  { secret, fetch: send, now }: WebhookDependencies,
): Promise<Response> {
  const body = format === 'slack' ? slackBodyOf(message) : bodyOf(message);
  const value = name === null ? null : secret(name);
  return send(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': 'headgate',
      ...(value === null ? {} : signature(message.id, body, value, now())),
    },
    body,
    // A redirect would send the warning to a URL that is not configured.
    redirect: 'manual',
    signal: AbortSignal.timeout(ANSWER_MS_MAX),
  });
}

/** Reads only the part of an answer that is shown. */
async function beginningOf(response: Response): Promise<string> {
  if (response.body === null) return '';
  let text = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (text.length >= ANSWER_CHARS_MAX) break;
  }
  return text.slice(0, ANSWER_CHARS_MAX);
}

function isRetryable(status: number): boolean {
  return status >= 500 || status === 408 || status === 425 || status === 429;
}

function bodyOf({ kind, at, id, ...data }: WebhookMessage): string {
  return JSON.stringify({ type: `headgate.${kind}`, timestamp: at, data: { id, kind, ...data } });
}

/**
 * Builds the body for Slack's incoming webhooks: plain text that mentions no user and contains no links chosen by
 * callers.
 */
function slackBodyOf({ kind, group, partition, message }: WebhookMessage): string {
  const names = [group, ...(partition === null ? [] : [partition])];
  const where = names.map((name) => name.slice(0, NAME_CHARS_MAX)).join(' · ');
  const text = `[${where}] ${kind.replaceAll('_', ' ')}: ${message}`;
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return JSON.stringify({ text: escaped, mrkdwn: false });
}

function signature(id: string, body: string, secret: string, now: number): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now / 1_000)),
    'webhook-signature': signerOf(secret).sign(id, new Date(now), body),
  };
}

/**
 * Whether a message is signed as Standard Webhooks (standardwebhooks.com, version 1) requires, at most 5 minutes ago.
 */
export function isSigned(headers: Headers, body: string, secret: string): boolean {
  try {
    signerOf(secret).verify(body, Object.fromEntries(headers), { jsonParse: false });
    return true;
  } catch {
    return false;
  }
}

/** Returns what signs and verifies messages with a secret. Throws if the secret is empty or no valid base64. */
function signerOf(secret: string): Webhook {
  return new Webhook(keyBytes(secret), { format: 'raw' });
}

/** Decodes a signing secret. Secrets of the standard are `whsec_` and base64. Any other text is used as it is. */
function keyBytes(secret: string): Uint8Array {
  if (!secret.startsWith('whsec_')) return new TextEncoder().encode(secret);
  return Uint8Array.from(atob(secret.slice('whsec_'.length)), (char) => char.charCodeAt(0));
}

function isUsable(secret: string): boolean {
  try {
    signerOf(secret);
    return true;
  } catch {
    return false;
  }
}
