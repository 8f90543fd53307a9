import type { IncomingHttpHeaders } from 'node:http';

/** Whose 429 body a call over the limit gets. */
export type RefusalStyle =
  | 'openai'
  | 'anthropic'
  | 'gemini'
  | 'azure'
  | 'bedrock'
  | 'ollama'
  | 'kimi'
  | 'zai';

/**
 * How one call is answered. Every field can be set for a whole scope, and for one call by a request
 * header in kebab case: `x-strict-chunk-delay-ms: 20`.
 */
export interface StrictBehaviour {
  /** Content chunks of a streamed answer, and words of one that is not streamed. */
  readonly chunks: number;
  /** Pause after every content chunk. */
  readonly chunkDelayMs: number;
  /** Pause before the response's headers. */
  readonly firstByteDelayMs: number;
  /** Goes silent after so many content chunks; 0 is right after the headers. */
  readonly silentAfterChunks: number | null;
  /** How long that silence lasts; null: until `resume` or until the client leaves. */
  readonly silentMs: number | null;
  /** Destroys the connection after so many content chunks; 0 is right after the headers. */
  readonly breakAfterChunks: number | null;
  /** Resets the connection instead of answering. */
  readonly resetBeforeHeaders: boolean;
  /** Answers this status with an error body in the caller's dialect. */
  readonly status: number | null;
  /** Sends a `retry-after` of so many seconds with a 429 or another error. */
  readonly retryAfterS: number | null;
  /** Compresses with gzip, with a flush after every chunk. */
  readonly gzip: boolean;
  /** Compresses with brotli, with a flush after every chunk. */
  readonly brotli: boolean;
  /** Sends Content-Length; null: only where the answer is one piece. */
  readonly contentLength: boolean | null;
  /** Answers 302 with this location. */
  readonly redirect: string | null;
  /** Answers 204. */
  readonly noContent: boolean;
  /** The provider's own counter lags: a slot there stays taken for so long after the call ended. */
  readonly accountingLagMs: number;
  /** Answers with what arrived, as JSON. */
  readonly echo: boolean;
  /** Answers with so many seeded bytes, their SHA-256 in `x-strict-sha256`. */
  readonly bytes: number | null;
  /** Whether the call counts as one in flight; null: as its route says. */
  readonly count: boolean | null;
}

/** The configuration of a scope. */
export interface StrictSettings extends StrictBehaviour {
  /** Calls that may be in flight at once; null: any number. */
  readonly limit: number | null;
  /** The same for single models, by their exact name. Both limits hold. */
  readonly limits: Readonly<Record<string, number>>;
  /** Null: by the dialect of the call. */
  readonly refusal: RefusalStyle | null;
}

export const DEFAULT_SETTINGS: StrictSettings = {
  limit: null,
  limits: {},
  refusal: null,
  chunks: 5,
  chunkDelayMs: 0,
  firstByteDelayMs: 0,
  silentAfterChunks: null,
  silentMs: null,
  breakAfterChunks: null,
  resetBeforeHeaders: false,
  status: null,
  retryAfterS: null,
  gzip: false,
  brotli: false,
  contentLength: null,
  redirect: null,
  noContent: false,
  accountingLagMs: 0,
  echo: false,
  bytes: null,
  count: null,
};

const NUMBERS = new Set<string>([
  'chunks',
  'chunkDelayMs',
  'firstByteDelayMs',
  'silentAfterChunks',
  'silentMs',
  'breakAfterChunks',
  'status',
  'retryAfterS',
  'accountingLagMs',
  'bytes',
]);

const kebab = (name: string): string => name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);

const HEADER_FIELDS = Object.keys(DEFAULT_SETTINGS)
  .filter((name) => !['limit', 'limits', 'refusal'].includes(name))
  .map((name) => ({ name, header: `x-strict-${kebab(name)}` }));

/** What a call's `x-strict-*` headers ask for, on top of its scope's settings. */
export function behaviourOf(
  settings: StrictSettings,
  headers: IncomingHttpHeaders,
): StrictBehaviour {
  const changes: Record<string, number | boolean | string> = {};
  for (const { name, header } of HEADER_FIELDS) {
    const value = headers[header];
    if (typeof value !== 'string') continue;
    if (NUMBERS.has(name)) changes[name] = Number(value);
    else if (name === 'redirect') changes[name] = value;
    else changes[name] = value !== '0' && value !== 'false';
  }
  return { ...settings, ...changes };
}

/** Merges a partial configuration; a field that does not exist is a mistake of the test's author. */
export function mergeSettings(
  settings: StrictSettings,
  partial: Partial<StrictSettings>,
): StrictSettings {
  for (const name of Object.keys(partial)) {
    if (!(name in DEFAULT_SETTINGS)) {
      throw new TypeError(`The strict upstream has no setting named ${name}.`);
    }
  }
  return { ...settings, ...partial };
}
