import { eventsIn } from '../event-streams.ts';
import { parseCutJson } from '../json/json-syntax.ts';

/**
 * Maximum bytes of a refusal's body that are read. The largest known one, Gemini's with its quota violations, has 3 KB.
 */
export const REFUSAL_BYTES_MAX = 8_192;

/** The fields of an error's body and headers, in any provider's format. Texts are in lower case. */
export interface ErrorFields {
  /** Codes, types and statuses, each as the provider's own text. Numbers are decimal. */
  readonly codes: ReadonlySet<string>;
  /** The messages, one per line. Never a whole JSON body, because request ids and prompts are not messages. */
  readonly text: string;
  /**
   * The same messages as a list. Empty if the body was cut, because the last one may be incomplete. A caller whose text
   * fills the body could otherwise choose where it is cut.
   */
  readonly messages: readonly string[];
  /** Whether the body is JSON, as APIs respond, and not an error of the edge in front of one. */
  readonly isOfApi: boolean;
  /** Google's names of the quotas that were exceeded. */
  readonly quotaIds: readonly string[];
  /** The first message, unchanged. */
  readonly message: string | null;
  /** Fields with a wait, in the order of the body. */
  readonly waits: readonly WaitField[];
  /** `X-RateLimit-Reset` among the headers that OpenRouter repeats in its body. */
  readonly resetAt: string | null;
}

/** A field with a wait: a duration (`span`, in seconds or with its unit), milliseconds, or an instant. */
interface WaitField {
  readonly value: string;
  readonly unit: 'span' | 'ms' | 'instant';
}

/** The names of such fields, in lower case, without dashes and underscores. */
const WAIT_KEYS: ReadonlyMap<string, WaitField['unit']> = new Map([
  ...(
    'retrydelay quotaresetdelay resetsinseconds resetinseconds resetseconds resetafterseconds resetsafter resetafter ' +
    'resetsin resetin retryafter retryafterseconds retryafterinseconds retryin retryinseconds waitseconds waittime ' +
    'estimatedtime'
  )
    .split(' ')
    .map((name) => [name, 'span'] as const),
  ...'retryafterms retryaftermilliseconds resetsinms resetinms waitms'
    .split(' ')
    .map((name) => [name, 'ms'] as const),
  ...'resetsat resetat resettime resettimestamp quotaresettimestamp retryat nextresetat'
    .split(' ')
    .map((name) => [name, 'instant'] as const),
]);

const CODE_KEYS = new Set([
  'code',
  'type',
  'status',
  'status_code',
  'statuscode',
  'http_status_code',
  '__type',
  'error_code',
  'reason',
  'limit_source',
]);
const TEXT_KEYS = new Set(['message', 'msg', 'status_msg', 'error_msg', 'detail', 'error', 'raw']);
const QUOTA_KEYS = new Set(['quotaid', 'quotametric']);
/** Fields that wrap errors. No other field is read, so an echoed request is never read. */
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

/** Fields in which only a wait is read. Their other content may come from the caller. */
const WAITING_KEYS = new Set(['headers', 'data', 'extra', 'rate_limit']);

/**
 * Maximum depth that is read. No provider nests errors deeper. It also limits how often a message may contain JSON of
 * its own.
 */
const DEPTH_MAX = 8;

/** Maximum members of one list that are read. Each violation of a quota is one. */
const ITEMS_MAX = 32;

/** The beginning of an event stream, for servers that send an error as one. */
const EVENTS = /^\ufeff?(?:data|event|id|retry)?:/;

/** Reads the known fields of an error. Never throws, and takes time linear in the maximum length. */
export function readErrorFields(body: string, headers: Headers): ErrorFields {
  const found = new FoundErrorFields();
  const awsType = headers.get('x-amzn-errortype');
  if (awsType !== null) found.code('__type', awsType);
  const text = body.slice(0, REFUSAL_BYTES_MAX).trim();
  // A page of HTML comes from an intermediary, so its text means nothing.
  if (!text.startsWith('<')) found.body(text);
  return {
    codes: found.codes,
    text: found.texts.join('\n'),
    messages: found.isCut ? [] : found.texts,
    isOfApi: found.isOfApi,
    quotaIds: found.quotaIds,
    message: found.message,
    waits: found.waits,
    resetAt: found.resetAt,
  };
}

const NO_JSON = { value: undefined, rest: null };

function parseJson(text: string): ReturnType<typeof parseCutJson> {
  return /^[{[]/.test(text) ? parseCutJson(text) : NO_JSON;
}

/** Whether this is Cloudflare's own error in JSON, which it sends to clients that accept JSON. */
function isOfEdge(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'cloudflare_error' in value;
}

class FoundErrorFields {
  readonly codes = new Set<string>();
  readonly texts: string[] = [];
  readonly quotaIds: string[] = [];
  message: string | null = null;
  readonly waits: WaitField[] = [];
  resetAt: string | null = null;
  isCut = false;
  isOfApi = false;

  /** Reads the body. In an event stream, only the first event is read. */
  body(text: string): void {
    const event = EVENTS.test(text) ? (eventsIn(text)[0]?.data.trim() ?? text) : text;
    const { value, rest } = parseJson(event);
    const hasMore = rest !== null && rest.trim() !== '';
    if (value === undefined || hasMore) return this.#words(event);
    this.isCut = rest === null;
    this.isOfApi = !isOfEdge(value);
    this.#enter(value, 1);
  }

  /**
   * Reads a message. Gateways put the whole body of the provider behind them into their own message. A message that
   * only begins with JSON, or may have been cut after it, is read as text, because it may begin with a name that the
   * caller chose.
   */
  #message(text: string, depth: number): void {
    const { value, rest } = depth < DEPTH_MAX && !this.isCut ? parseJson(text) : NO_JSON;
    if (value === undefined || rest?.trim() !== '') return this.#words(text);
    this.#enter(value, depth + 1);
  }

  #words(text: string): void {
    this.message ??= text;
    this.texts.push(text.toLowerCase());
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
      else if (typeof member === 'number') this.#number(key, member);
      else if (CHILD_KEYS.has(key)) this.#enter(member, depth + 1);
      else if (WAITING_KEYS.has(key)) this.#waitsIn(member);
      else this.#protocolSpan(key, member);
    }
  }

  #number(key: string, value: number): void {
    if (CODE_KEYS.has(key)) this.codes.add(String(value));
    else this.#wait(key, String(value));
  }

  #wait(key: string, value: string): void {
    const unit = WAIT_KEYS.get(key.replaceAll(/[-_]/g, ''));
    if (unit !== undefined && this.waits.length < ITEMS_MAX) this.waits.push({ value, unit });
  }

  #string(key: string, value: string, depth: number): void {
    if (CODE_KEYS.has(key)) this.code(key, value);
    else if (TEXT_KEYS.has(key)) this.#message(value, depth);
    else if (QUOTA_KEYS.has(key)) this.quotaIds.push(value.toLowerCase());
    else this.#wait(key, value);
  }

  /** Reads a duration in seconds and nanoseconds, as in Google's protocol. */
  #protocolSpan(key: string, value: unknown): void {
    const { seconds, nanos = 0 } = Object(value) as Readonly<Record<string, unknown>>;
    if (seconds === undefined) return;
    const total = Number(seconds) + Number(nanos) / 1e9;
    if (total >= 0) this.#wait(key, total.toFixed(3));
  }

  #waitsIn(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      const key = name.toLowerCase();
      if (typeof member !== 'string' && typeof member !== 'number') continue;
      if (key === 'x-ratelimit-reset') this.resetAt ??= String(member);
      else this.#wait(key, String(member));
    }
  }
}
