import { foldedName } from '../body/model-scan.ts';
import { KeyNames } from '../json/json-key.ts';
import type { JsonVisitor, WalkedValue, Want } from '../json/json-visitor.ts';
import { JsonWalk } from '../json/json-walk.ts';
import { readErrorFields } from '../refusal/error-fields.ts';
import { statusInside } from '../refusal/inside-status.ts';
import { runIn, type ReportedRun } from '../operation/runs.ts';
import { parseObject } from '../json/parse-object.ts';
import { bytesOf, jsonTextOf, type Frame } from './frame.ts';
import { beginsObject } from './frame-models.ts';

/** A message of a client, as far as it matters for slots. */
export interface ClientMessage {
  readonly frame: Frame;
  /**
   * `create` asks for a response, with the fields that a POST has, or for one that goes on from the one before; `steer` goes on
   * with one that runs. `unreadable`: an upstream may take it for a request, and for which one is not known.
   */
  readonly kind: 'create' | 'steer' | 'other' | 'unreadable';
  /** Null: it names none. */
  readonly model: string | null;
  /** One of several streams of answers on a connection; null: the one that has no name. */
  readonly streamId: string | null;
}

/** The request for a response. */
export type CreateMessage = ClientMessage & { readonly kind: 'create' };

/** The news of an answer, by what it means for its slot. */
export interface ResponsesEvent {
  readonly streamId: string | null;
  /** State of the background run that the answer is; null: the message has none. */
  readonly run: ReportedRun | null;
  readonly means:
    | { readonly kind: 'begun' }
    | { readonly kind: 'ended'; readonly isFailed: boolean }
    /** With the status that the same would have over HTTP. */
    | {
        readonly kind: 'error';
        readonly status: number;
        readonly headers: Readonly<Record<string, string>>;
      }
    /** Input was taken that the answer goes on with by itself once it has ended, or that was not to be. */
    | { readonly kind: 'steered'; readonly isTaken: boolean }
    | { readonly kind: 'other' };
}

/** How a message that begins or ends something is told from hundreds of others without parsing it. */
const PUSHES =
  /"type"\s*:\s*"(?:response\.(?:created|queued|in_progress|completed|failed|incomplete|cancelled|steer\.\w+)|error)"/;

/** Types that ask for a response or steer one, in any case, and escapes that may hide them. */
const MAY_ASK = /re[sſ]pon[sſ]e\.(?:create|append|[sſ]teer)|\\/i;

/**
 * Whether a message of a client may ask for a response or steer one, without parsing it. Many servers read bytes like text.
 * Servers may read a message that does not begin like an object by their own rules.
 */
export function mayAsk(frame: Frame): boolean {
  return typeof frame !== 'string' || !beginsObject(frame) || MAY_ASK.test(frame);
}

/** Reads a message of a client. `before`: the model of the last request on the connection. */
export function readClientMessage(
  frame: Frame,
  before: string | null,
): ClientMessage | CreateMessage {
  const text = jsonTextOf(frame);
  const message = text === null ? null : parseObject(text);
  const streamId = textOr(message?.['stream_id']);
  const other = { frame, kind: 'other', model: null, streamId } as const;
  // Other parsers take more for JSON, and not all of them the last of two fields.
  if (mayAsk(frame) && (message === null || namesOddly(message) || namesTwice(frame))) {
    return { ...other, kind: 'unreadable' };
  }
  switch (message?.['type']) {
    case 'response.create':
      return { ...other, kind: 'create', model: textOr(message['model']) };
    case 'response.append':
      // Its model is that of the one before, as older agents and those who copy them mean it.
      return { ...other, kind: 'create', model: textOr(message['model']) ?? before };
    case 'response.steer':
      return { ...other, kind: 'steer' };
    default:
      return other;
  }
}

/** The fields that tell what a message is. */
const FIELD_NAMES: readonly string[] = ['type', 'model', 'stream_id'];
const FIELDS = new KeyNames(FIELD_NAMES);

/** The relevant types. */
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

/** Tells whether one of the fields that count stands in a message twice. */
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

/** Tells whether a message asks for a response. */
export function isCreate(message: ClientMessage): message is CreateMessage {
  return message.kind === 'create';
}

/** Tells whether a message of the upstream may begin or end something. */
export function isReporting(frame: Frame): frame is string {
  return typeof frame === 'string' && PUSHES.test(frame);
}

/** Reads a message of the upstream; null: it is no event. */
export function readEvent(frame: Frame): ResponsesEvent | null {
  const message = typeof frame === 'string' ? parseObject(frame) : null;
  if (message === null || typeof message['type'] !== 'string') return null;
  const { type, response } = message;
  const run = runOf(response);
  return { streamId: textOr(message['stream_id']), means: meaningOf(type, message), run };
}

function runOf(response: unknown): ReportedRun | null {
  const said = typeof response === 'object' && response !== null ? runIn(response) : null;
  // A running answer in the foreground is also reported as in progress.
  const isBackground = (response as { background?: unknown } | null)?.background === true;
  return isBackground ? said : null;
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

/** An error of the connection has a status. An error of the answer has the status of its code. */
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
