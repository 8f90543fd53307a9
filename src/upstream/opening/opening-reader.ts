import { parseCutJson } from '../json/cut-json.ts';
import { errorIn, judgeRecord, type Judgement } from './judge-record.ts';

/**
 * How an answer comes: as server-sent events, as one JSON value on each line, or as one JSON text, which may be an array
 * of records.
 */
export type AnswerForm = 'events' | 'lines' | 'json';

/** Decodes pieces that stand alone. */
const decoder = new TextDecoder();

const FORMS: ReadonlyMap<string, AnswerForm> = new Map([
  ['text/event-stream', 'events'],
  ['application/x-ndjson', 'lines'],
  ['application/jsonl', 'lines'],
  ['application/json-lines', 'lines'],
]);

/** Returns the form of an answer; null: no error can be read in it. */
export function formOf(contentType: string | null): AnswerForm | null {
  if (contentType === null) return null;
  // Spares most answers the rest.
  if (contentType === 'application/json') return 'json';
  const [type = ''] = contentType.toLowerCase().split(';');
  const name = type.trim();
  return FORMS.get(name) ?? (name.includes('json') ? 'json' : null);
}

/** Characters in which a JSON error shows itself: its fields come first, and echoes of the request behind them. */
const HEAD_CHARACTERS = 2_048;

/**
 * Signs of an error near the beginning of a JSON text. An answer without any is not parsed. A quote inside a string is
 * escaped, so text of the model shows none.
 */
const SUSPECT =
  /"error"\s*:\s*["[{]|"(?:type|object)"\s*:\s*"error"|"status"\s*:\s*"failed"|"(?:base_resp|error_code)"|"success"\s*:\s*false|^\s*\[?\s*\{\s*"(?:code|message|msg|detail)"\s*:/;

/** Whether a JSON text may be an error. */
function maySayError(text: string): boolean {
  return SUSPECT.test(text.length > HEAD_CHARACTERS ? text.slice(0, HEAD_CHARACTERS) : text);
}

/** Judges an answer that is there as a whole. */
export function judgeWhole(form: AnswerForm, bytes: Uint8Array): Judgement {
  if (form === 'json') {
    // Most answers are served, and this much tells.
    const head = decoder.decode(bytes.subarray(0, HEAD_CHARACTERS));
    return maySayError(head) ? judgeJson(decoder.decode(bytes)) : 'content';
  }
  const reader = new OpeningReader(form);
  const judgement = reader.push(bytes);
  return judgement === 'prelude' ? reader.end() : judgement;
}

/** Judges a whole JSON text, which may be cut. */
function judgeJson(text: string): Judgement {
  if (!maySayError(text)) return 'content';
  const { value } = parseCutJson(firstValue(text));
  return judgeRecord(value);
}

/** The text from its first record on, as the array around it is not needed. */
function firstValue(text: string): string {
  return text.replace(/^\s*\[?\s*/, '');
}

/** How an event that only announces the answer begins, which saves parsing the request that it repeats. */
const ANNOUNCES =
  /^\s*\{\s*"type"\s*:\s*"(?:response\.(?:created|queued|in_progress)|message_start|ping)"/;

/** Reads the beginning of an answer until it shows content or an error. */
export class OpeningReader {
  /** `bytes`: any byte is content. */
  readonly #form: AnswerForm | 'bytes';
  readonly #decoder = new TextDecoder();
  /** The text that no judgement covers yet. */
  #rest = '';

  constructor(form: AnswerForm | 'bytes') {
    this.#form = form;
  }

  /** Judges what has come so far. `prelude`: nothing but that. */
  push(chunk: Uint8Array): Judgement {
    if (this.#form === 'bytes') return 'content';
    this.#rest += this.#decoder.decode(chunk, { stream: true });
    if (this.#form === 'json') return this.#judgeJson();
    for (;;) {
      const end = this.#form === 'events' ? eventEnd(this.#rest) : lineEnd(this.#rest);
      if (end === null) return 'prelude';
      const judgement = this.#judge(this.#rest.slice(0, end));
      if (judgement !== 'prelude') return judgement;
      this.#rest = this.#rest.slice(end);
    }
  }

  /** Judges what is left when the answer has ended. */
  end(): Judgement {
    if (this.#form === 'json') return judgeJson(this.#rest);
    return this.#rest.trim() === '' ? 'content' : this.#judge(this.#rest);
  }

  #judge(text: string): Judgement {
    return this.#form === 'events' ? judgeEvent(text) : judgeData(text, '');
  }

  #judgeJson(): Judgement {
    const text = firstValue(this.#rest);
    // Spaces and line ends keep a connection alive.
    if (text === '') return 'prelude';
    if (!maySayError(text)) return 'content';
    const { value, rest } = parseCutJson(text);
    return rest === null ? 'prelude' : judgeRecord(value);
  }
}

/** Finds the end of the first whole event; null: there is none. */
function eventEnd(text: string): number | null {
  const found = /\r\n\r\n|\n\n|\r\r(?!\n)/.exec(text);
  return found === null ? null : found.index + found[0].length;
}

function lineEnd(text: string): number | null {
  const at = text.indexOf('\n');
  return at < 0 ? null : at + 1;
}

interface StreamEvent {
  readonly name: string;
  readonly data: string;
}

/** Reads the fields of an event; comments have none. */
function eventOf(text: string): StreamEvent {
  let name = '';
  const data: string[] = [];
  for (const line of text.split(/\r\n|\n|\r/)) {
    const value = /^(data|event): ?(.*)$/.exec(line);
    if (value?.[1] === 'data') data.push(value[2] ?? '');
    else if (value?.[1] === 'event') name = (value[2] ?? '').trim();
  }
  return { name, data: data.join('\n') };
}

function judgeEvent(text: string): Judgement {
  const { name, data } = eventOf(text);
  return judgeData(data, name);
}

function judgeData(data: string, name: string): Judgement {
  const text = data.trim();
  if (text === '' || ANNOUNCES.test(text)) return 'prelude';
  const { value } = parseCutJson(text);
  if (value === undefined) return name === 'error' ? { error: text } : 'content';
  return judgeRecord(value, name);
}

/** Returns the error with which a text ends that is the end of a stream, whatever came before it; null: there is none. */
export function errorAtEnd(text: string, form: AnswerForm): string | null {
  const records = form === 'events' ? text.split(/\r\n\r\n|\n\n|\r\r/) : text.split('\n');
  if (form === 'json') return errorOfLastElement(text);
  for (const record of records.toReversed()) {
    const { name, data } = form === 'events' ? eventOf(record) : { name: '', data: record };
    const trimmed = data.trim();
    if (trimmed === '' || trimmed === '[DONE]') continue;
    return errorIn(parseCutJson(trimmed).value, name);
  }
  return null;
}

/** Finds the error in the last element of an array of records, of which the text is the end. */
function errorOfLastElement(text: string): string | null {
  const at = text.lastIndexOf('"error"');
  const from = at < 0 ? -1 : text.lastIndexOf('{', at);
  return from < 0 ? null : errorIn(parseCutJson(text.slice(from)).value);
}
