import { JsonKey } from './json-key.ts';
import type { KeyNames } from './json-key.ts';
import { isLineEnd, JsonString } from './json-string.ts';
import type { JsonVisitor, ValueKind, WalkedValue, Want } from './json-visitor.ts';
import { KeptBytes } from './kept-bytes.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const SPACE = 0x20;

/** Containers nested deeper than this are stepped over. Requests and answers need about ten levels. */
const DEPTH_MAX = 64;

export interface WalkOptions {
  /**
   * `document`: one JSON value, over any number of lines; of an array, each object is a record.
   * `lines`: event streams and JSON lines. Every provider writes the JSON of a record in one line; the
   * rest of the line, as `data:`, is of no interest, and a broken record ends with its line.
   */
  readonly form: 'document' | 'lines';
  /** The keys that the visitor tells apart. */
  readonly keys: KeyNames;
  /** Most bytes that are kept of a value. */
  readonly keepBytesMax: number;
}

/**
 * What the next byte belongs to: `outside` → `key` → (`in_key`) → `colon` → `value` → `in_string`,
 * `in_scalar` or `in_container` → `after` → `key` or `value` … `lost`: the record is broken.
 */
type Place =
  | 'outside'
  | 'key'
  | 'in_key'
  | 'colon'
  | 'value'
  | 'in_string'
  | 'in_scalar'
  | 'in_container'
  | 'after'
  | 'lost';

/**
 * Walks over JSON that comes in chunks, whatever their borders, and tells a visitor where in it they
 * belong. It builds no values, so it takes frames in pieces at no more than a parser's cost for whole ones, and
 * its memory does not grow with the text. It checks no more of the syntax than it must: the rest is the reader's to judge.
 */
export class JsonWalk implements WalkedValue {
  readonly #visitor: JsonVisitor;
  readonly #isLines: boolean;
  readonly #key: JsonKey;
  readonly #string: JsonString;
  readonly #kept: KeptBytes;
  #place: Place = 'outside';
  #depth = 0;
  /** By level: whether the container there is an object, and the key of the value in it. */
  readonly #isObject: boolean[] = [];
  readonly #keys: string[] = [];
  #kind: ValueKind = 'scalar';
  #want: Want = 'walk';
  /** Of a container that is not walked: open brackets, and whether the next byte is in a string. */
  #inner = 0;
  #inString = false;
  /** Bytes in the chunks before this one. */
  #offset = 0;
  #start = 0;
  #end = 0;
  #recordStart = 0;

  constructor(visitor: JsonVisitor, { form, keys, keepBytesMax }: WalkOptions) {
    this.#visitor = visitor;
    this.#isLines = form === 'lines';
    this.#key = new JsonKey(keys, this.#isLines);
    this.#string = new JsonString(this.#isLines);
    this.#kept = new KeptBytes(keepBytesMax);
  }

  get depth(): number {
    return this.#depth;
  }

  key(level: number): string {
    return this.#keys[level] ?? '';
  }

  get start(): number {
    return this.#start;
  }

  get end(): number {
    return this.#end;
  }

  get recordStart(): number {
    return this.#recordStart;
  }

  get textBytes(): number {
    return this.#string.textBytes;
  }

  get kept(): Uint8Array {
    return this.#kept.bytes;
  }

  /** Takes the next bytes, and holds on to none of them. */
  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#place === 'in_key') at = this.#readKey(chunk, at);
      else if (this.#place === 'in_string') at = this.#readString(chunk, at);
      else if (this.#place === 'in_scalar') at = this.#readScalar(chunk, at);
      else if (this.#place === 'in_container') at = this.#readContainer(chunk, at);
      else at = this.#readStructure(chunk, at);
    }
    this.#offset += chunk.length;
  }

  /**
   * The text ends here: an open record does too, and with it a string that was being counted. What is
   * pushed afterwards begins anew.
   */
  close(): void {
    if (this.#place === 'in_string' && this.#want === 'count') this.#visitor.end(this, this.#kind);
    if (this.#place !== 'outside' && this.#place !== 'lost') this.#endRecord('outside', false);
    this.#place = 'outside';
  }

  /** Takes what stands between keys and values, up to the next one of them. */
  #readStructure(chunk: Uint8Array, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      const place = this.#place;
      if (byte <= SPACE) {
        if (this.#isLines && isLineEnd(byte)) this.#endLine();
      } else if (place === 'outside') {
        if (byte === OPEN_BRACE) this.#beginRecord(at);
      } else if (place === 'key') {
        if (byte === QUOTE) {
          this.#key.begin();
          this.#place = 'in_key';
          return at + 1;
        }
        if (byte === CLOSE_BRACE) this.#closeContainer();
        else this.#endRecord('lost', false);
      } else if (place === 'colon') {
        if (byte === COLON) this.#place = 'value';
        else this.#endRecord('lost', false);
      } else if (place === 'value') {
        if (this.#beginValue(byte, at)) return at + 1;
      } else if (place === 'after') {
        if (byte === COMMA) this.#place = this.#isObject[this.#depth] === true ? 'key' : 'value';
        else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#closeContainer();
        else this.#endRecord('lost', false);
      }
    }
    return chunk.length;
  }

  #beginRecord(at: number): void {
    this.#recordStart = this.#offset + at;
    this.#open(true);
  }

  #open(isObject: boolean): void {
    this.#depth += 1;
    this.#isObject[this.#depth] = isObject;
    this.#keys[this.#depth] = '';
    this.#place = isObject ? 'key' : 'value';
  }

  #closeContainer(): void {
    this.#depth -= 1;
    this.#place = 'after';
    if (this.#depth === 0) this.#endRecord('outside', true);
  }

  #endRecord(next: 'outside' | 'lost', isWhole: boolean): void {
    this.#depth = 0;
    this.#place = next;
    this.#visitor.record(isWhole);
  }

  #endLine(): void {
    if (this.#place === 'lost') this.#place = 'outside';
    else if (this.#place !== 'outside') this.#endRecord('outside', false);
  }

  #readKey(chunk: Uint8Array, from: number): number {
    const at = this.#key.read(chunk, from);
    const { state } = this.#key;
    if (state === 'broken') this.#endRecord('lost', false);
    if (state !== 'ended') return at;
    this.#keys[this.#depth] = this.#key.name();
    this.#place = 'colon';
    return at;
  }

  /** Whether the bytes that follow are those of the value, and not of what is in it. */
  #beginValue(byte: number, at: number): boolean {
    if (byte === CLOSE_BRACKET && this.#isObject[this.#depth] === false) {
      this.#closeContainer();
      return false;
    }
    const kind = kindOf(byte);
    this.#kind = kind;
    this.#start = this.#offset + at;
    this.#kept.clear();
    this.#want = this.#visitor.begin(this, kind);
    if (kind === 'string') {
      this.#string.begin();
      this.#place = 'in_string';
      return true;
    }
    const isContainer = kind !== 'scalar';
    if (isContainer && this.#want === 'walk' && this.#depth < DEPTH_MAX) {
      this.#open(kind === 'object');
      return false;
    }
    if (this.#want === 'keep') this.#kept.addByte(byte);
    this.#inner = 1;
    this.#inString = false;
    this.#place = isContainer ? 'in_container' : 'in_scalar';
    return true;
  }

  #endValue(end: number): void {
    this.#place = 'after';
    this.#end = this.#offset + end;
    if (this.#want === 'keep' || this.#want === 'count') this.#visitor.end(this, this.#kind);
  }

  #readString(chunk: Uint8Array, from: number): number {
    const isCounted = this.#want === 'count';
    const at = isCounted ? this.#string.count(chunk, from) : this.#string.skip(chunk, from);
    const { state } = this.#string;
    if (this.#want === 'keep') this.#kept.add(chunk, from, state === 'ended' ? at - 1 : at);
    if (state === 'ended') this.#endValue(at);
    else if (state === 'broken') this.#endRecord('lost', false);
    return at;
  }

  #readScalar(chunk: Uint8Array, from: number): number {
    let at = from;
    while (at < chunk.length && isScalarByte(chunk[at] ?? 0)) at += 1;
    if (this.#want === 'keep') this.#kept.add(chunk, from, at);
    if (at < chunk.length) this.#endValue(at);
    return at;
  }

  /** A container that is kept or stepped over: only its brackets and strings are told apart. */
  #readContainer(chunk: Uint8Array, from: number): number {
    let at = from;
    while (at < chunk.length && this.#inner > 0) {
      if (this.#inString) {
        at = this.#string.skip(chunk, at);
        this.#inString = this.#string.state === 'open';
        if (this.#string.state === 'broken') break;
        continue;
      }
      const byte = chunk[at] ?? 0;
      if (byte < SPACE && this.#isLines && isLineEnd(byte)) break;
      at += 1;
      if (byte === QUOTE) {
        this.#string.begin();
        this.#inString = true;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        this.#inner += 1;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        this.#inner -= 1;
      }
    }
    if (this.#want === 'keep') this.#kept.add(chunk, from, at);
    if (this.#inner === 0) this.#endValue(at);
    // The line has ended in the middle: `readStructure` takes its last byte.
    else if (at < chunk.length) this.#endRecord('lost', false);
    return at;
  }
}

function kindOf(byte: number): ValueKind {
  if (byte === QUOTE) return 'string';
  if (byte === OPEN_BRACE) return 'object';
  return byte === OPEN_BRACKET ? 'array' : 'scalar';
}

function isScalarByte(byte: number): boolean {
  return byte > SPACE && byte !== COMMA && byte !== CLOSE_BRACE && byte !== CLOSE_BRACKET;
}
