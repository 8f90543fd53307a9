import { pause } from './background.ts';
import { onTimer } from './call-clock.ts';
import type { WebhookConfig } from '../contract/config/config.ts';
import type { Attention } from '../contract/attention.ts';
import type { AttentionRule } from '../contract/attention-rules.ts';
import type { Warning, WarningKind } from '../contract/warnings.ts';
import { directoryOf, type Env } from '../env.ts';
import { logEvent } from './log.ts';
import { readSecret, secretFault } from './secrets.ts';

/** Milliseconds of the pauses before the tries that follow one that failed. */
const RETRY_PAUSES_MS = [2_000, 10_000, 60_000];

/** How long a receiver may take; one that takes longer has not received it. */
const ANSWER_MS_MAX = 10_000;

/** How much of a receiver's answer to a test is read and shown. */
const ANSWER_CHARS_MAX = 300;

/** How much of a name that callers may have made up goes into a line for people. */
const NAME_CHARS_MAX = 200;

/** Everything that a delivery needs of the world. */
export interface WebhookDependencies {
  /** Where warnings go to now; null: nowhere. */
  readonly target: () => Promise<WebhookConfig | null>;
  /** The value of a secret. Null: there is none. */
  readonly secret: (name: string) => string | null;
  /** Why there is no secret of that name. @default it is not set */
  readonly secretFault?: (name: string) => string | null;
  /** Whether plain http is allowed, as where Headgate is self-hosted. */
  readonly allowsHttp: boolean;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly pause: (ms: number) => Promise<void>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** A warning or an entry of what needs a person on its way, or a test of the way. */
type WebhookMessage = Omit<Warning, 'kind'> & {
  readonly kind: WarningKind | 'attention' | 'test';
  readonly attention?: Attention;
};

/** An entry of what needs a person, when it was found, and when it was over. */
interface FoundEntry {
  readonly id: string;
  readonly at: string;
  readonly entry: Attention;
  readonly cleared_at?: string;
}

/** Rules whose entries a warning of the pool announces at once. */
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

/** Result of a test. */
interface WebhookTestResult {
  /** Status of the answer. Null: there was none. */
  readonly status: number | null;
  /** The beginning of the answer. */
  readonly answer: string;
  /** Why it was not received, without the address. Null: it was. */
  readonly error: string | null;
}

/** Takes what deliveries need from where they run. */
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
    // A configuration of an older release names no kinds.
    const kinds = target?.kinds ?? null;
    if (target === null || (kinds !== null && !kinds.includes(warning.kind))) return;
    const failure = await deliver(warning, target, dependencies);
    if (failure !== null) logFailure(warning, failure);
  } catch (error) {
    logFailure(warning, error instanceof Error ? error.name : 'unknown error');
  }
}

/** Sends an entry of what needs a person, or that it is over, unless a warning has announced it. Never throws. */
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
    message: clearedAt === undefined ? `${says} ${advice}` : `Over: ${says}`,
    figures: count === null ? {} : { count },
    attention: entry,
    ...(clearedAt !== undefined && { cleared_at: clearedAt }),
  };
  try {
    const target = await dependencies.target();
    const kinds = target?.kinds ?? null;
    const isMeant = kinds === null ? !WARNED.has(rule) : kinds.includes('attention');
    if (target === null || !isMeant) return;
    const failure = await deliver(message, target, dependencies);
    if (failure !== null) logFailure(message, failure);
  } catch (error) {
    logFailure(message, error instanceof Error ? error.name : 'unknown error');
  }
}

/** Sends a message that says that it is a test, once, and tells what the receiver answered. Never throws. */
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
    message: 'This is a test: warnings of Headgate arrive here.',
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
    return failed(wordsFor(error));
  }
}

/** Says why there was no answer, without the words of the error: they may name the address. */
function wordsFor(error: unknown): string {
  const name = error instanceof Error ? error.name : 'unknown error';
  if (name !== 'TimeoutError') return `the receiver could not be reached (${name})`;
  return `the receiver did not answer within ${ANSWER_MS_MAX / 1_000} s`;
}

function logFailure({ id, kind, group }: WebhookMessage, why: string): void {
  logEvent('webhook_failed', { warning: id, kind, group, why });
}

/** Delivers. Null: it was received. Else why not, without the address, which may hold a credential. */
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
      if (!isWorthAnother(response.status)) return failure;
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
    return `the secret ${name} ${faultOf?.(name) ?? 'is not set'}`;
  }
  if (value !== null && !isUsable(value)) return `the secret ${name} has no base64 behind whsec_`;
  return allowsHttp || url.startsWith('https://') ? null : 'the address is not https';
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
      ...(value === null ? {} : await signature(message.id, body, value, now())),
    },
    body,
    // Who forwards it elsewhere would hand the warning to an address that nobody configured.
    redirect: 'manual',
    signal: AbortSignal.timeout(ANSWER_MS_MAX),
  });
}

/** Reads how an answer begins, and no more of it than is shown. */
async function beginningOf(response: Response): Promise<string> {
  if (response.body === null) return '';
  let text = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (text.length >= ANSWER_CHARS_MAX) break;
  }
  return text.slice(0, ANSWER_CHARS_MAX);
}

function isWorthAnother(status: number): boolean {
  return status >= 500 || status === 408 || status === 425 || status === 429;
}

function bodyOf({ kind, at, id, ...data }: WebhookMessage): string {
  return JSON.stringify({ type: `headgate.${kind}`, timestamp: at, data: { id, kind, ...data } });
}

/** Makes what Slack's incoming webhooks take: plain text, in which nobody is called and nothing is a link of somebody's making. */
function slackBodyOf({ kind, group, partition, message }: WebhookMessage): string {
  const names = [group, ...(partition === null ? [] : [partition])];
  const where = names.map((name) => name.slice(0, NAME_CHARS_MAX)).join(' · ');
  const text = `[${where}] ${kind.replaceAll('_', ' ')}: ${message}`;
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return JSON.stringify({ text: escaped, mrkdwn: false });
}

async function signature(
  id: string,
  body: string,
  secret: string,
  now: number,
): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(now / 1_000));
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', keyBytes(secret), algorithm, false, ['sign']);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  const bytes = await crypto.subtle.sign('HMAC', key, signed);
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${btoa(String.fromCharCode(...new Uint8Array(bytes)))}`,
  };
}

/** Reads a secret: those of the standard are `whsec_` and base64; any other text is taken as it is. */
export function keyBytes(secret: string): Uint8Array<ArrayBuffer> {
  if (!secret.startsWith('whsec_')) return new Uint8Array(new TextEncoder().encode(secret));
  return Uint8Array.from(atob(secret.slice('whsec_'.length)), (char) => char.charCodeAt(0));
}

/** Whether a secret can sign. */
export function isUsable(secret: string): boolean {
  try {
    return keyBytes(secret).length > 0;
  } catch {
    return false;
  }
}
