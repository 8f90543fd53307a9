import type { StrictEgress } from './egress.ts';
import type { StrictFailure } from './failures.ts';
import type { RateTable } from './rates.ts';
import { checkRates } from './rates.ts';
import type { StrictProvider } from './refusal.ts';

/** The API shapes that the upstream speaks. */
export type StrictDialect = 'openai' | 'anthropic' | 'gemini' | 'azure' | 'bedrock' | 'ollama';

/**
 * How one call is answered. Every field can be set for a whole scope, for one call by a request header
 * in kebab case (`x-strict-chunk-delay-ms: 20`), and by the last user message, where an SDK leaves room
 * for nothing else: `[[strict chunk-delay-ms=20 output-tokens=7]]`. Only `count` is decided too early
 * for the message to have a say.
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
  /** Ends a stream with its dialect's error event after so many content chunks. */
  readonly errorAfterChunks: number | null;
  /** Faults after 0 chunks happen after the opening events of the answer, right before the first content. */
  readonly atContent: boolean;
  /** Refuses inside a 200: with a JSON error, or in a stream after the opening events. */
  readonly refusesInside: boolean;
  /** Resets the connection instead of answering. */
  readonly resetBeforeHeaders: boolean;
  /** Answers this status with an error body in the caller's dialect. */
  readonly status: number | null;
  /** Refuses calls for the address that they come from, in this form. */
  readonly egressRefused: StrictEgress | null;
  /** Sends a `retry-after` of so many seconds with a 429 or another error. */
  readonly retryAfterS: number | null;
  /** Compresses with gzip, with a flush after every chunk. */
  readonly gzip: boolean;
  /** Compresses with brotli, with a flush after every chunk. */
  readonly brotli: boolean;
  /** Compresses with zstd, with a flush after every chunk. Errors are compressed too, with all three codings. */
  readonly zstd: boolean;
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
  /** Failure of the call, if it counts. */
  readonly fail: StrictFailure | null;
  /** How long a call refused by `fail` or `failNext` is told to wait; null: what fits the kind. */
  readonly failWaitMs: number | null;
  /** Tokens of the whole prompt, as counted and reported; null: the bytes of its text / 4. */
  readonly inputTokens: number | null;
  /** How many of these come from a cache. */
  readonly cachedTokens: number;
  /** Tokens of the answer, spread evenly over its chunks; null: one per chunk. */
  readonly outputTokens: number | null;
  /** How many of these are reasoning; the first ones. */
  readonly reasoningTokens: number;
  /** The tier of service that answers report; null: they report none. */
  readonly serviceTier: string | null;
  /** Closes a WebSocket with this code. */
  readonly closeCode: number | null;
  /** The reason that goes with it. */
  readonly closeReason: string | null;
  /** When it does: after so many content chunks of a turn, or messages of an echo; null: at once. */
  readonly closeAfterChunks: number | null;
  /** Ends a turn of the Responses API as one that is incomplete. */
  readonly incomplete: boolean;
  /** Sends messages of a WebSocket as binary ones, whatever their kind. */
  readonly binary: boolean;
  /** Sends each message of a WebSocket in so many fragments. */
  readonly fragments: number;
  /** Sends so many bytes as soon as a WebSocket is open, as fast as they are taken. */
  readonly floodBytes: number | null;
  /** How large each message of that flood is. */
  readonly floodMessageBytes: number;
  /** Pings a WebSocket so often. */
  readonly pingEveryMs: number | null;
  /** Agrees to permessage-deflate where it is offered. */
  readonly deflate: boolean;
}

/** The configuration of a scope. */
export interface StrictSettings extends StrictBehaviour {
  /** Calls that may be in flight at once; null: any number. */
  readonly limit: number | null;
  /** The same for single models, by their exact name. Both limits hold. */
  readonly limits: Readonly<Record<string, number>>;
  /** Whose each key is: others are refused with 401. Null: every key is taken, and of no account. */
  readonly accounts: Readonly<Record<string, string>> | null;
  /** WebSockets that may be open at once where each is a call; null: any number. */
  readonly sessionLimit: number | null;
  /** Turns of WebSockets that may be in flight at once; null: any number. */
  readonly turnLimit: number | null;
  /** Whether calls start runs that go on after their answers. */
  readonly runs: boolean;
  /** Runs that may go on at once; null: any number. */
  readonly runLimit: number | null;
  /** Calls that may be in flight at once of one account, whatever keys they come with; null: any number. */
  readonly accountLimit: number | null;
  /** The header of answers that names the account; null: none does. */
  readonly accountHeader: string | null;
  /** Calls with one key that may be in flight at once, by the key. */
  readonly limitsByKey: Readonly<Record<string, number>>;
  /** How calls with one key are answered, by the key, before what each asks for. */
  readonly byKey: Readonly<Record<string, Partial<StrictBehaviour>>>;
  /** Limits per minute and per day. */
  readonly rates: RateTable;
  /** Whose refusals and limit headers a call gets; null: by the dialect of the call. */
  readonly refuseAs: StrictProvider | null;
  /** `refuseAs` in refusals only, without the headers that come with every answer. */
  readonly refusal: StrictProvider | 'kimi' | null;
  /** Sends the provider's limit headers with every answer; null: if `refuseAs` names one. */
  readonly sendsLimitHeaders: boolean | null;
  /** Limit headers say that nothing remains, whatever does. */
  readonly liesInHeaders: boolean;
  /** Rate refusals name a wait only in limit headers. */
  readonly hidesWaits: boolean;
  /** Keeps all that arrives, to be asked for with `received`; of WebSockets their messages too. */
  readonly keepsRequests: boolean;
  /** Body of all served calls. It is sent in pieces that end in the middle of a line. */
  readonly answer: { readonly contentType: string; readonly body: string } | null;
}

const DEFAULT_BEHAVIOUR: StrictBehaviour = {
  chunks: 5,
  chunkDelayMs: 0,
  firstByteDelayMs: 0,
  silentAfterChunks: null,
  atContent: false,
  refusesInside: false,
  silentMs: null,
  breakAfterChunks: null,
  errorAfterChunks: null,
  resetBeforeHeaders: false,
  status: null,
  egressRefused: null,
  retryAfterS: null,
  gzip: false,
  brotli: false,
  zstd: false,
  contentLength: null,
  redirect: null,
  noContent: false,
  accountingLagMs: 0,
  echo: false,
  bytes: null,
  count: null,
  fail: null,
  failWaitMs: null,
  inputTokens: null,
  cachedTokens: 0,
  outputTokens: null,
  reasoningTokens: 0,
  serviceTier: null,
  closeCode: null,
  closeReason: null,
  closeAfterChunks: null,
  incomplete: false,
  binary: false,
  fragments: 1,
  floodBytes: null,
  floodMessageBytes: 65_536,
  pingEveryMs: null,
  deflate: false,
};

export const DEFAULT_SETTINGS: StrictSettings = {
  ...DEFAULT_BEHAVIOUR,
  limit: null,
  limits: {},
  sessionLimit: null,
  turnLimit: null,
  runs: false,
  runLimit: null,
  accounts: null,
  accountLimit: null,
  accountHeader: null,
  limitsByKey: {},
  byKey: {},
  rates: {},
  refuseAs: null,
  refusal: null,
  sendsLimitHeaders: null,
  liesInHeaders: false,
  hidesWaits: false,
  keepsRequests: false,
  answer: null,
};

const NUMBERS = new Set<string>([
  'chunks',
  'chunkDelayMs',
  'firstByteDelayMs',
  'silentAfterChunks',
  'silentMs',
  'breakAfterChunks',
  'errorAfterChunks',
  'status',
  'retryAfterS',
  'accountingLagMs',
  'bytes',
  'failWaitMs',
  'inputTokens',
  'cachedTokens',
  'outputTokens',
  'reasoningTokens',
  'closeCode',
  'closeAfterChunks',
  'fragments',
  'floodBytes',
  'floodMessageBytes',
  'pingEveryMs',
]);

const TEXTS = new Set<string>(['redirect', 'fail', 'egressRefused', 'closeReason', 'serviceTier']);

const kebab = (name: string): string => name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);

const FIELDS = Object.keys(DEFAULT_BEHAVIOUR).map((name) => ({
  name,
  header: `x-strict-${kebab(name)}`,
}));

/** Applies a call's `x-strict-*` fields on top of its scope's settings. */
export function behaviourOf(
  behaviour: StrictBehaviour,
  asked: Readonly<Record<string, unknown>>,
): StrictBehaviour {
  const changes: Record<string, number | boolean | string> = {};
  for (const { name, header } of FIELDS) {
    const value = asked[header];
    if (typeof value !== 'string') continue;
    if (NUMBERS.has(name)) changes[name] = Number(value);
    else if (TEXTS.has(name)) changes[name] = value;
    else changes[name] = value !== '0' && value !== 'false';
  }
  return { ...behaviour, ...changes };
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
  if (partial.rates !== undefined) checkRates(partial.rates);
  return { ...settings, ...partial };
}
