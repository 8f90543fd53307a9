import { parseCutJson } from '../json/cut-json.ts';

/**
 * Maximum bytes of a refusal's body that are looked at. The largest that was seen, Gemini's with its quota
 * violations, has 3 KB.
 */
export const REFUSAL_BYTES_MAX = 8_192;

/** The fields of an error's body and headers, whatever the provider's shape; all in lower case. */
export interface ErrorFields {
  /** Codes, types and statuses, each as the provider's own text; numbers in decimal. */
  readonly codes: ReadonlySet<string>;
  /** The messages, one per line. Never a whole JSON body: request ids and prompts are no messages. */
  readonly text: string;
  /** Google's names of the quotas that were exceeded. */
  readonly quotaIds: readonly string[];
  /** Google's `RetryInfo.retryDelay`. */
  readonly retryDelay: string | null;
  /** `X-RateLimit-Reset` among the headers that OpenRouter repeats in its body. */
  readonly resetAt: string | null;
}

const CODE_KEYS = new Set([
  'code',
  'type',
  'status',
  'status_code',
  '__type',
  'error_code',
  'reason',
  'limit_source',
]);
const TEXT_KEYS = new Set(['message', 'msg', 'status_msg', 'detail', 'error', 'raw']);
const QUOTA_KEYS = new Set(['quotaid', 'quotametric']);
/** Fields in which errors are wrapped. Nothing else is entered, so an echoed request is never read. */
const CHILD_KEYS = new Set([
  'error',
  'errors',
  'base_resp',
  'detail',
  'details',
  'innererror',
  'metadata',
  'violations',
]);

/**
 * Maximum depth that is entered: deeper than any provider wraps. It also bounds how often a message may hold JSON
 * of its own.
 */
const DEPTH_MAX = 8;

/** Maximum members of one list that are looked at; each violation of a quota is one. */
const ITEMS_MAX = 32;

/** An event stream that begins with an error. */
const EVENT_PREFIX = /^(?:event:[^\n]{0,100}\n)?data: ?/;

/** Reads what is known of an error's shape. Never throws, and takes time linear in the bound. */
export function readErrorFields(body: string, headers: Headers): ErrorFields {
  const found = new Found();
  const awsType = headers.get('x-amzn-errortype');
  if (awsType !== null) found.code('__type', awsType);
  const text = body.slice(0, REFUSAL_BYTES_MAX).trim().replace(EVENT_PREFIX, '');
  // A page of HTML comes from something in between, and its words mean nothing.
  if (!text.startsWith('<')) found.message(text, 0);
  return {
    codes: found.codes,
    text: found.texts.join('\n'),
    quotaIds: found.quotaIds,
    retryDelay: found.retryDelay,
    resetAt: found.resetAt,
  };
}

class Found {
  readonly codes = new Set<string>();
  readonly texts: string[] = [];
  readonly quotaIds: string[] = [];
  retryDelay: string | null = null;
  resetAt: string | null = null;

  /** Takes a message. Gateways put the whole body of the provider behind them into their own message. */
  message(text: string, depth: number): void {
    const value = /^[{[]/.test(text) && depth < DEPTH_MAX ? parseCutJson(text) : undefined;
    if (value === undefined) this.texts.push(text.toLowerCase());
    else this.#enter(value, depth + 1);
  }

  code(key: string, value: string): void {
    // AWS: `com.amazon.coral.service#ThrottlingException:http://…`
    const name = key === '__type' ? value.replace(/^[^#]*#/, '').replace(/:.*$/s, '') : value;
    this.codes.add(name.trim().toLowerCase());
  }

  #enter(value: unknown, depth: number): void {
    if (depth > DEPTH_MAX || typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      for (const item of value.slice(0, ITEMS_MAX)) this.#enter(item, depth + 1);
      return;
    }
    for (const [name, member] of Object.entries(value)) {
      const key = name.toLowerCase();
      if (typeof member === 'string') this.#string(key, member, depth);
      else if (typeof member === 'number' && CODE_KEYS.has(key)) this.codes.add(String(member));
      else if (CHILD_KEYS.has(key)) this.#enter(member, depth + 1);
      else if (key === 'headers') this.#headers(member);
    }
  }

  #string(key: string, value: string, depth: number): void {
    if (CODE_KEYS.has(key)) this.code(key, value);
    else if (TEXT_KEYS.has(key)) this.message(value, depth);
    else if (QUOTA_KEYS.has(key)) this.quotaIds.push(value.toLowerCase());
    else if (key === 'retrydelay') this.retryDelay ??= value;
  }

  #headers(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      if (name.toLowerCase() === 'x-ratelimit-reset') this.resetAt ??= String(member);
    }
  }
}
