import { foldedName, isModelList, MODEL_BYTES_MAX } from '../body/model-scan.ts';
import { KeyNames, textOf } from '../json/json-string.ts';
import {
  parseObject,
  type JsonVisitor,
  type ValueKind,
  type WalkedValue,
  type Want,
} from '../json/json-syntax.ts';
import { JsonWalk } from '../json/json-walk.ts';
import { readErrorFields } from '../refusal/error-fields.ts';
import { statusInside } from '../refusal/classify-refusal.ts';
import { isId, runIn, type ReportedRun } from '../operation/runs.ts';

/** Messages of WebSockets: their bytes, the models that they name, and those of the Responses API. */

/** A complete WebSocket message of text or bytes, however it was split into frames. */
export type Frame = string | ArrayBuffer;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

/** Approximate bytes that a message holds in memory. */
export function sizeOf(frame: Frame): number {
  return typeof frame === 'string' ? frame.length : frame.byteLength;
}

export function frameText(frame: Frame): string {
  return typeof frame === 'string' ? frame : decoder.decode(frame);
}

/**
 * The text of a message that should be JSON. null if its bytes are not UTF-8, which a server may decode differently.
 */
export function jsonTextOf(frame: Frame): string | null {
  if (typeof frame === 'string') return frame;
  try {
    return strictDecoder.decode(frame);
  } catch {
    return null;
  }
}

export function bytesOf(frame: Frame): Uint8Array {
  return typeof frame === 'string' ? encoder.encode(frame) : new Uint8Array(frame);
}

export interface FrameModels {
  readonly kind: 'read';
  /** Models that generate: `model` at the top level, or in `setup`, `session` or `response`. */
  readonly main: readonly string[];
  /** Auxiliary models, such as one that transcribes the input. */
  readonly beside: readonly string[];
  readonly isSetup: boolean;
}

/** A message that parsers may read differently. `why` continues "The message could not be read: …". */
interface Unreadable {
  readonly kind: 'unreadable';
  readonly why: string;
}

/**
 * Signs of a message that names a model or a setup for some parser: the words themselves, escapes that may hide one of
 * their letters, or the zeros of UTF-16. Every message of a session is tested, so the pattern must be cheap.
 */
const MAY_NAME = /model|fallbac[k\u212a]|u[sſ]er_?config|[sſ]etup|\\[^"\\/bfnrt]|\0/i;

/**
 * Servers may read a message that is not an object by their own rules, such as an array, a comment or another encoding.
 */
const BEGINS_OBJECT = /^\ufeff?[ \t\r\n]*\{/;

export function beginsObject(text: string): boolean {
  return BEGINS_OBJECT.test(text);
}

/** Whether some parser may find a model in a message. */
export function mayNameModel(text: string): boolean {
  return MAY_NAME.test(text);
}

/** Reads the models that a message names, as thoroughly as the body of a call. */
export function readFrameModels(text: string): FrameModels | Unreadable {
  const visitor = new ModelsVisitor();
  const walk = new JsonWalk(visitor, {
    form: 'strict_object',
    keys: KEYS,
    keepBytesMax: MODEL_BYTES_MAX + 1,
    keyBytesMax: MODEL_BYTES_MAX,
  });
  walk.push(bytesOf(text));
  return visitor.read();
}

const MODEL = 'model';
const SETUP = 'setup';
/** A list of conversation items, or an object with the session's audio settings. */
const INPUT = 'input';
const LETTER_N = 0x6e;

/** Values with the client's own data, whose keys have no meaning here: schemas, items, variables. */
const OWN_DATA = [
  'tools',
  'tool_choice',
  'toolConfig',
  'tool_config',
  'item',
  'metadata',
  'variables',
  'schema',
  'json_schema',
  'responseSchema',
  'response_schema',
  'responseJsonSchema',
  'clientContent',
  'client_content',
  'toolResponse',
  'tool_response',
];
const ownData = new Set(OWN_DATA);
const KEYS = new KeyNames([MODEL, INPUT, ...OWN_DATA]);

class ModelsVisitor implements JsonVisitor {
  readonly #main: string[] = [];
  readonly #beside: string[] = [];
  /** For each level, whether the open object has named its model. */
  readonly #hasNamed: boolean[] = [];
  #setups = 0;
  #why: string | null = null;
  #isWhole = false;

  key(value: WalkedValue): void {
    const { keyBytes, depth } = value;
    if (keyBytes === null) return;
    const key = textOf(keyBytes);
    if (key === null) return this.#fail('a key is not a JSON string', value);
    const folded = foldedName(key);
    if (folded === MODEL) {
      if (key !== MODEL) return this.#fail('the name of a model field is not in lower case', value);
      if (this.#hasNamed[depth] === true) return this.#fail('it names its model twice', value);
      this.#hasNamed[depth] = true;
    } else if (isModelList(folded)) {
      this.#fail(`it lists several models in \`${folded}\``, value);
    } else if (depth === 1 && folded.includes(SETUP)) {
      if (key !== SETUP) return this.#fail('its setup is spelled differently', value);
      this.#setups += 1;
      if (this.#setups > 1) this.#fail('it has two setups', value);
    }
  }

  begin(value: WalkedValue, kind: ValueKind): Want {
    const { depth } = value;
    const key = value.key(depth);
    if (key === MODEL) {
      if (kind === 'string') return 'keep';
      if (value.firstByte !== LETTER_N) this.#fail('a model field is not a string', value);
      return 'skip';
    }
    if (kind !== 'object' && kind !== 'array') return 'skip';
    if (ownData.has(key) || (key === INPUT && kind === 'array')) return 'skip';
    if (kind === 'object') this.#hasNamed[depth + 1] = false;
    return 'walk';
  }

  end(value: WalkedValue): void {
    const { kept, depth } = value;
    const model = kept.length > MODEL_BYTES_MAX ? null : textOf(kept);
    if (model === null) {
      return this.#fail(`a model is not a JSON string of at most ${MODEL_BYTES_MAX} bytes`, value);
    }
    if (model.includes(',')) return this.#fail('a model field names several models', value);
    (depth <= 2 ? this.#main : this.#beside).push(model);
  }

  record(isWhole: boolean): void {
    if (isWhole) this.#isWhole = true;
    else this.#why ??= 'the JSON is malformed';
  }

  stray(): void {
    this.#why ??= this.#isWhole ? 'something follows the JSON' : 'it is not a JSON object';
  }

  read(): FrameModels | Unreadable {
    if (this.#why !== null) return unreadable(this.#why);
    if (!this.#isWhole) return unreadable('it is not a complete JSON object');
    const isSetup = this.#setups > 0;
    return { kind: 'read', main: this.#main, beside: this.#beside, isSetup };
  }

  #fail(why: string, value: WalkedValue): void {
    this.#why ??= why;
    value.leave();
  }
}

function unreadable(why: string): Unreadable {
  return { kind: 'unreadable', why };
}

/** A message of a client, reduced to what is relevant for slots. */
export interface ClientMessage {
  readonly frame: Frame;
  /**
   * `create` requests a response, with the fields of a POST, or continues the previous one. `steer` continues a running
   * response. `unreadable`: an upstream may read it as a request whose meaning is unknown.
   */
  readonly kind: 'create' | 'steer' | 'other' | 'unreadable';
  /** null if it names none. */
  readonly model: string | null;
  /** One of several streams of responses on a connection. null for the stream without a name. */
  readonly streamId: string | null;
  /** The response that a request continues. null if it names none. */
  readonly previousId: string | null;
  /** Whether it continues the last response of its stream, without naming it. */
  readonly isAppend: boolean;
}

export type CreateMessage = ClientMessage & { readonly kind: 'create' };

/** An event of a response, by its meaning for the slot. */
export interface ResponsesEvent {
  readonly streamId: string | null;
  /** Id of the response. null if it has none. */
  readonly responseId: string | null;
  /** Whether the response can be requested by its id later. */
  readonly isStored: boolean;
  /** State of the background run, if the response is one. null otherwise. */
  readonly run: ReportedRun | null;
  readonly means:
    | { readonly kind: 'begun' }
    | { readonly kind: 'ended'; readonly isFailed: boolean }
    /** The status is the one that the same error has over HTTP. */
    | {
        readonly kind: 'error';
        readonly status: number;
        readonly headers: Readonly<Record<string, string>>;
      }
    /** Input was accepted, with which the response continues automatically after it ends, or it was not accepted. */
    | { readonly kind: 'steered'; readonly isTaken: boolean }
    | { readonly kind: 'other' };
}

/** Recognizes the few messages that begin or end something, without parsing the hundreds of others. */
const PUSHES =
  /"type"\s*:\s*"(?:response\.(?:created|queued|in_progress|completed|failed|incomplete|cancelled|steer\.\w+)|error)"/;

/** Types that request or steer a response, in any case, and escapes that may hide them. */
const MAY_REQUEST = /re[sſ]pon[sſ]e\.(?:create|append|[sſ]teer)|\\/i;

/**
 * Whether a message of a client may request or steer a response, without parsing it. Many servers read bytes like text.
 * Servers may read a message that does not begin like an object by their own rules.
 */
export function mayAsk(frame: Frame): boolean {
  return typeof frame !== 'string' || !beginsObject(frame) || MAY_REQUEST.test(frame);
}

/** Reads a message of a client. `before` is the model of the last request on the connection. */
export function readClientMessage(
  frame: Frame,
  before: string | null,
): ClientMessage | CreateMessage {
  const text = jsonTextOf(frame);
  const message = text === null ? null : parseObject(text);
  const streamId = textOr(message?.['stream_id']);
  const previousId = textOr(message?.['previous_response_id']);
  const base = { frame, model: null, streamId, previousId, isAppend: false } as const;
  const other = { ...base, kind: 'other' } as const;
  // Other parsers accept more than valid JSON, and do not all use the last of two equal fields.
  if (mayAsk(frame) && (message === null || namesOddly(message) || namesTwice(frame))) {
    return { ...other, kind: 'unreadable' };
  }
  switch (message?.['type']) {
    case 'response.create':
      return { ...other, kind: 'create', model: textOr(message['model']) };
    case 'response.append':
      // It uses the model of the previous request, as older agents and compatible clients expect.
      return { ...base, kind: 'create', model: textOr(message['model']) ?? before, isAppend: true };
    case 'response.steer':
      return { ...other, kind: 'steer' };
    default:
      return other;
  }
}

/** The fields that determine the meaning of a message. */
const FIELD_NAMES: readonly string[] = ['type', 'model', 'stream_id'];
const FIELDS = new KeyNames(FIELD_NAMES);

const TYPES: readonly string[] = ['response.create', 'response.append', 'response.steer'];

/** Whether only case-insensitive parsers, such as Go's, find such a field or type in a message. */
function namesOddly(message: Readonly<Record<string, unknown>>): boolean {
  const { type } = message;
  if (typeof type === 'string' && isOddly(type, TYPES)) return true;
  return Object.keys(message).some((name) => isOddly(name, FIELD_NAMES));
}

function isOddly(word: string, words: readonly string[]): boolean {
  const folded = foldedName(word.trim());
  return folded !== word && words.includes(folded);
}

/** Whether a message contains one of the relevant fields twice. */
function namesTwice(frame: Frame): boolean {
  const seen = new Set<string>();
  let isTwice = false;
  const visitor: JsonVisitor = {
    begin: (value: WalkedValue): Want => {
      const key = value.key(1);
      if (key !== '') isTwice ||= seen.has(key);
      seen.add(key);
      return 'skip';
    },
    end: () => {},
    record: () => {},
  };
  new JsonWalk(visitor, { form: 'object', keys: FIELDS, keepBytesMax: 0 }).push(bytesOf(frame));
  return isTwice;
}

export function isCreate(message: ClientMessage): message is CreateMessage {
  return message.kind === 'create';
}

/** Whether a message of the upstream may begin or end something. */
export function isReporting(frame: Frame): frame is string {
  return typeof frame === 'string' && PUSHES.test(frame);
}

/** Reads a message of the upstream. Returns null if it is not an event. */
export function readEvent(frame: Frame): ResponsesEvent | null {
  const message = typeof frame === 'string' ? parseObject(frame) : null;
  if (message === null || typeof message['type'] !== 'string') return null;
  const { type, response } = message;
  const run = runOf(response);
  const { id, store } = (response ?? {}) as { readonly id?: unknown; readonly store?: unknown };
  const responseId = isId(id) ? id : null;
  const isStored = responseId !== null && store !== false;
  const streamId = textOr(message['stream_id']);
  return { streamId, responseId, isStored, means: meaningOf(type, message), run };
}

function runOf(response: unknown): ReportedRun | null {
  const run = typeof response === 'object' && response !== null ? runIn(response) : null;
  // A running foreground response is also reported as in progress.
  const isBackground = (response as { background?: unknown } | null)?.background === true;
  return isBackground ? run : null;
}

function meaningOf(
  type: string,
  message: Readonly<Record<string, unknown>>,
): ResponsesEvent['means'] {
  switch (type) {
    case 'response.created':
      return { kind: 'begun' };
    case 'response.completed':
    case 'response.incomplete':
    case 'response.cancelled':
      return { kind: 'ended', isFailed: false };
    case 'response.failed':
      return { kind: 'ended', isFailed: true };
    case 'response.steer.accepted':
      return { kind: 'steered', isTaken: true };
    case 'response.steer.pending':
    case 'response.steer.failed':
      return { kind: 'steered', isTaken: false };
    case 'error':
      return { kind: 'error', status: statusOf(message), headers: headersOf(message['headers']) };
    default:
      return { kind: 'other' };
  }
}

/** An error of the connection has a status. An error of the response has the status of its code. */
function statusOf(message: Readonly<Record<string, unknown>>): number {
  const { status } = message;
  if (typeof status === 'number' && status >= 400 && status <= 599) return status;
  return statusInside(readErrorFields(JSON.stringify(message), NO_HEADERS), []);
}

const NO_HEADERS = new Headers();

function headersOf(value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null) return {};
  const texts = Object.entries(value).filter(
    ([name, text]) => /^[\w-]+$/.test(name) && isPlain(text),
  );
  return Object.fromEntries(texts.map(([name, text]) => [name, String(text)]));
}

function isPlain(value: unknown): boolean {
  return typeof value === 'number' || (typeof value === 'string' && /^[\x20-\x7e]*$/.test(value));
}

function textOr(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
