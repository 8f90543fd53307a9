import { JsonKey, KEY_BYTES_MAX, JsonString, type KeyNames } from './json-string.ts';
import * as syntax from './json-syntax.ts';
import type { JsonVisitor, ValueKind, WalkedValue, Want } from './json-syntax.ts';
import { KeptBytes } from '../body/bytes.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const SPACE = 0x20;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** Maximum depth of containers. Deeper ones are skipped. Requests and responses need about ten levels. */
const DEPTH_MAX = 64;

export interface WalkOptions {
  readonly form: syntax.WalkForm;
  readonly keys: KeyNames;
  readonly keepBytesMax: number;
  readonly keyBytesMax?: number;
}

/**
 * Position of the next byte. The order is `OUTSIDE` → `BEFORE_KEY` → (`IN_KEY`) → `BEFORE_COLON` → `BEFORE_VALUE` →
 * `IN_STRING`, `IN_SCALAR` or `IN_CONTAINER` → `AFTER_VALUE` → `BEFORE_KEY` or `BEFORE_VALUE` … `OUTSIDE`, or `BEHIND`
 * the only object. `LOST` means that the record is malformed, or the rest of it is not walked. The positions are
 * numbers, because they change with nearly every byte, and the engine stores a number at less cost.
 */
const OUTSIDE = 0;
const BEFORE_KEY = 1;
const IN_KEY = 2;
const BEFORE_COLON = 3;
const BEFORE_VALUE = 4;
const IN_STRING = 5;
const IN_SCALAR = 6;
const IN_CONTAINER = 7;
const AFTER_VALUE = 8;
const BEHIND = 9;
const LOST = 10;

/**
 * Walks over JSON that arrives in chunks, split anywhere, and reports its values to a visitor. It builds no values. It
 * reads partial frames at no more than a parser's cost for whole ones, and its memory does not grow with the text. It
 * checks only the necessary syntax, because the reader validates the rest.
 */
export class JsonWalk implements WalkedValue {
  readonly #visitor: JsonVisitor;
  readonly #reportsKeys: boolean;
  readonly #between: Uint8Array;
  readonly #inside: Int8Array;
  readonly #isLines: boolean;
  /** Whether the text is one object, whose top level is checked. */
  readonly #isAlone: boolean;
  readonly #key: JsonKey;
  readonly #string: JsonString;
  readonly #kept: KeptBytes;
  #place: number = OUTSIDE;
  #depth = 0;
  /** For each level, whether its container is an object, and the key of the current value. */
  readonly #isObject: boolean[] = [];
  readonly #keys: string[] = [];
  #kind: ValueKind = 'scalar';
  #want: Want = 'walk';
  /** State in a container that is not walked: number of open brackets, and whether the next byte is in a string. */
  #inner = 0;
  #inString = false;
  /** Number of bytes in the chunks before this one. */
  #offset = 0;
  #firstByte = 0;
  #start = 0;
  #end = 0;
  #recordStart = 0;

  constructor(visitor: JsonVisitor, { form, keys, keepBytesMax, keyBytesMax }: WalkOptions) {
    const { between, inside } = syntax.syntaxOf(form);
    this.#visitor = visitor;
    this.#reportsKeys = visitor.key !== undefined;
    this.#between = between;
    this.#inside = inside;
    this.#isLines = form === 'lines';
    this.#isAlone = form === 'object' || form === 'strict_object';
    this.#key = new JsonKey(keys, this.#isLines, keyBytesMax ?? KEY_BYTES_MAX);
    this.#string = new JsonString(this.#isLines);
    this.#kept = new KeptBytes(keepBytesMax);
  }

  get depth(): number {
    return this.#depth;
  }

  key(level: number): string {
    return this.#keys[level] ?? '';
  }

  get keyBytes(): Uint8Array | null {
    return this.#key.bytes;
  }

  get firstByte(): number {
    return this.#firstByte;
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

  get words(): number {
    return this.#string.words;
  }

  get kept(): Uint8Array {
    return this.#kept.bytes;
  }

  leave(): void {
    this.#depth = 0;
    this.#place = LOST;
  }

  /** Reads the next bytes, without keeping any of them. */
  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#place === IN_KEY) at = this.#readKey(chunk, at);
      else if (this.#place === IN_STRING) at = this.#readString(chunk, at);
      else if (this.#place === IN_SCALAR) at = this.#readScalar(chunk, at);
      else if (this.#place === IN_CONTAINER) at = this.#readContainer(chunk, at);
      else at = this.#readStructure(chunk, at);
    }
    this.#offset += chunk.length;
  }

  /**
   * Ends the text, including an open record and a string that is being counted. Bytes pushed afterwards start a new
   * text.
   */
  close(): void {
    if (this.#place === IN_STRING && this.#want === 'count') this.#visitor.end(this, this.#kind);
    if (this.#depth > 0) this.#endRecord(OUTSIDE, false);
    this.#place = OUTSIDE;
  }

  /** Reads the bytes between keys and values, up to the next key or value. */
  #readStructure(chunk: Uint8Array, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      const place = this.#place;
      if (byte <= SPACE && this.#between[byte] !== 0) {
        if (this.#between[byte] === syntax.LINE_END) this.#endLine();
      } else if (place === OUTSIDE) {
        if (byte === OPEN_BRACE) this.#beginRecord(at);
        else if (this.#isAlone) this.#passMark(byte, at);
      } else if (place === BEFORE_KEY) {
        if (byte === QUOTE) {
          this.#key.begin();
          this.#place = IN_KEY;
          return at + 1;
        }
        if (byte === CLOSE_BRACE) this.#closeContainer();
        else this.#endRecord(LOST, false);
      } else if (place === BEFORE_COLON) {
        if (byte === COLON) this.#place = BEFORE_VALUE;
        else this.#endRecord(LOST, false);
      } else if (place === BEFORE_VALUE) {
        if (this.#beginValue(byte, at)) return at + 1;
      } else if (place === AFTER_VALUE) {
        if (byte === COMMA) {
          this.#place = this.#isObject[this.#depth] === true ? BEFORE_KEY : BEFORE_VALUE;
        } else if (this.#closes(byte)) {
          this.#closeContainer();
        } else if (!this.#isAlone || this.#between[byte] !== syntax.WORD) {
          this.#endRecord(LOST, false);
        }
      } else if (place === BEHIND) {
        this.#endAstray();
      } else if (!this.#isLines) {
        return chunk.length;
      }
    }
    return chunk.length;
  }

  /** Whether a byte after a value closes its container. In lenient forms, either bracket does. */
  #closes(byte: number): boolean {
    if (!this.#isAlone) return byte === CLOSE_BRACE || byte === CLOSE_BRACKET;
    return byte === (this.#isObject[this.#depth] === true ? CLOSE_BRACE : CLOSE_BRACKET);
  }

  /** Some parsers, such as Python's, skip a byte order mark. */
  #passMark(byte: number, at: number): void {
    if (byte !== BYTE_ORDER_MARK[this.#offset + at]) this.#endAstray();
  }

  #endAstray(): void {
    this.#place = LOST;
    this.#visitor.stray?.();
  }

  #beginRecord(at: number): void {
    this.#recordStart = this.#offset + at;
    this.#open(true);
  }

  #open(isObject: boolean): void {
    this.#depth += 1;
    this.#isObject[this.#depth] = isObject;
    this.#keys[this.#depth] = '';
    this.#place = isObject ? BEFORE_KEY : BEFORE_VALUE;
  }

  #closeContainer(): void {
    this.#depth -= 1;
    this.#place = AFTER_VALUE;
    if (this.#depth === 0) this.#endRecord(this.#isAlone ? BEHIND : OUTSIDE, true);
  }

  #endRecord(next: number, isWhole: boolean): void {
    this.#depth = 0;
    this.#place = next;
    this.#visitor.record(isWhole, this);
  }

  #endLine(): void {
    if (this.#place === LOST) this.#place = OUTSIDE;
    else if (this.#place !== OUTSIDE) this.#endRecord(OUTSIDE, false);
  }

  #readKey(chunk: Uint8Array, from: number): number {
    const at = this.#key.read(chunk, from);
    const { isOpen, hasEnded } = this.#key;
    if (!hasEnded) {
      if (!isOpen) this.#endRecord(LOST, false);
      return at;
    }
    this.#keys[this.#depth] = this.#key.name();
    this.#place = BEFORE_COLON;
    if (this.#reportsKeys) this.#visitor.key?.(this);
    return at;
  }

  /** Returns whether the following bytes belong to the value itself, and not to its members. */
  #beginValue(byte: number, at: number): boolean {
    if (byte === CLOSE_BRACKET && this.#isObject[this.#depth] === false) {
      this.#closeContainer();
      return false;
    }
    const kind = kindOf(byte);
    this.#kind = kind;
    this.#firstByte = byte;
    this.#start = this.#offset + at;
    this.#kept.clear();
    this.#want = this.#visitor.begin(this, kind);
    if (this.#place === LOST) return true;
    if (kind === 'string') {
      this.#string.begin();
      this.#place = IN_STRING;
      return true;
    }
    const isContainer = kind !== 'scalar';
    if (isContainer && this.#want === 'walk' && this.#depth < DEPTH_MAX) {
      this.#open(kind === 'object');
      return false;
    }
    if (!isContainer && this.#isAlone && this.#between[byte] !== syntax.WORD) {
      this.#endRecord(LOST, false);
      return true;
    }
    if (this.#want === 'keep') this.#kept.addByte(byte);
    this.#inner = 1;
    this.#inString = false;
    this.#place = isContainer ? IN_CONTAINER : IN_SCALAR;
    return true;
  }

  #endValue(end: number): void {
    this.#place = AFTER_VALUE;
    this.#end = this.#offset + end;
    if (this.#want !== 'walk' && this.#want !== 'skip') this.#visitor.end(this, this.#kind);
  }

  #readString(chunk: Uint8Array, from: number): number {
    const isCounted = this.#want === 'count' || this.#want === 'sample';
    const at = isCounted ? this.#string.count(chunk, from) : this.#string.skip(chunk, from);
    const { isOpen, hasEnded } = this.#string;
    if (this.#want === 'keep' || this.#want === 'sample') {
      this.#kept.add(chunk, from, hasEnded ? at - 1 : at);
    }
    if (hasEnded) this.#endValue(at);
    else if (!isOpen) this.#endRecord(LOST, false);
    return at;
  }

  #readScalar(chunk: Uint8Array, from: number): number {
    let at = from;
    while (at < chunk.length && this.#between[chunk[at] ?? 0] === syntax.WORD) at += 1;
    if (this.#want === 'keep') this.#kept.add(chunk, from, at);
    if (at < chunk.length) this.#endValue(at);
    return at;
  }

  /** Reads a container that is kept or skipped. Only its brackets and strings are distinguished. */
  #readContainer(chunk: Uint8Array, from: number): number {
    const at = this.#skipContainer(chunk, from);
    if (this.#want === 'keep') this.#kept.add(chunk, from, at);
    if (this.#inner === 0) this.#endValue(at);
    // `readStructure` then reads the byte that ended it, such as a line end.
    else if (at < chunk.length) this.#endRecord(LOST, false);
    return at;
  }

  /**
   * Returns the index after its last bracket, the index of the byte that made it malformed, or the length of the chunk.
   */
  #skipContainer(chunk: Uint8Array, from: number): number {
    const string = this.#string;
    const inside = this.#inside;
    const { length } = chunk;
    let inner = this.#inner;
    let at = from;
    if (this.#inString) {
      at = string.skip(chunk, from);
      this.#inString = string.isOpen;
      if (!string.hasEnded) return at;
    }
    while (at < length) {
      const byte = chunk[at] ?? 0;
      if (byte === QUOTE) {
        string.begin();
        at = string.skip(chunk, at + 1);
        if (string.hasEnded) continue;
        this.#inString = string.isOpen;
        break;
      }
      const change = inside[byte] ?? 0;
      if (change === syntax.BREAK) break;
      at += 1;
      if (change === 0) continue;
      inner += change;
      if (inner === 0) break;
    }
    this.#inner = inner;
    return at;
  }
}

function kindOf(byte: number): ValueKind {
  if (byte === QUOTE) return 'string';
  if (byte === OPEN_BRACE) return 'object';
  return byte === OPEN_BRACKET ? 'array' : 'scalar';
}
