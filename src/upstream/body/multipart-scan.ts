import { lenientField, plainField } from './content-type.ts';
import {
  ABSENT,
  Capture,
  foundAt,
  goesOn,
  matters,
  MODEL_BYTES_MAX,
  BodyModelNames,
  PROMPT,
  referenceIn,
  MORE,
  unreadable,
} from './model-scan.ts';
import type { Depth, ModelScan, ScanState } from './model-scan.ts';

const CR = 0x0d;
const LF = 0x0a;
const DASH = 0x2d;
const SPACE = 0x20;
const TAB = 0x09;

/** Maximum bytes of a part's headers. Headers are a few lines, so more bytes indicate a mistake. */
const PART_HEADERS_BYTES_MAX = 8_192;

/**
 * Position of the next byte. The order is `content` (of a part, or the text before the first one) → `boundary_end`
 * (after a boundary: `--` or the end of the line) → `headers` → `content` … `end`.
 */
type ScanPosition = 'content' | 'boundary_end' | 'headers' | 'end';

/**
 * Finds the form field `model` in multipart/form-data. Parts with a file name are files, whatever their field is
 * called. The search for a boundary starts only at line ends, so files are skipped at the speed of the engine's own
 * search.
 *
 * A thorough scan accepts only forms that every parser splits in the same way. It rejects lines that begin with `--`
 * and the stem of the boundary but are not a boundary.
 */
export function createMultipartModelScan(
  boundary: string,
  depth: Depth = 'first',
  stem = boundary,
): ModelScan {
  return new MultipartModelScan(boundary, depth, stem);
}

class MultipartModelScan implements ModelScan {
  /** A form cannot request an event stream. */
  readonly isStream = false;
  readonly depth: Depth;
  readonly undecidedBytes = 0;
  readonly #delimiter: Uint8Array;
  #state: ScanState = MORE;
  #place: ScanPosition = 'content';
  /** The bytes of the boundary after the stem, and the number of them that were read. */
  readonly #tail: Uint8Array;
  #tailRead = 0;
  /** Number of delimiter bytes that match so far. No line precedes the first boundary. */
  #matched = 2;
  #sawBoundary = false;
  /** The previous byte after a boundary. 0 if there is none yet. */
  #last = 0;
  /** Number of bytes that match of the empty line that ends the headers. */
  #blank = 0;
  #isModel = false;
  #modelStart = 0;
  /** Position at which the last delimiter began. */
  #contentEnd = 0;
  /** Number of bytes in the chunks before this one. */
  #offset = 0;
  readonly #headers = new Capture(PART_HEADERS_BYTES_MAX);
  readonly #value: Capture;
  /** null if the first model is enough. */
  readonly #names: BodyModelNames | null;
  /** Whether the current match began at a line end that only some parsers recognize. */
  #isBare = false;

  constructor(boundary: string, depth: Depth, stem: string) {
    this.depth = depth;
    this.#names = depth === 'thorough' ? new BodyModelNames() : null;
    this.#delimiter = new TextEncoder().encode(`\r\n--${stem}`);
    this.#tail = new TextEncoder().encode(boundary.slice(stem.length));
    // The delimiter is captured with the value that it ends.
    this.#value = new Capture(MODEL_BYTES_MAX + this.#delimiter.length);
  }

  get goesOn(): boolean {
    return goesOn(this.#state, this.depth);
  }

  push(chunk: Uint8Array): ScanState {
    let at = 0;
    while (at < chunk.length && this.goesOn) {
      if (this.#place === 'content' && !this.#isModel) {
        at = this.#skipContent(chunk, at);
        continue;
      }
      const byte = chunk[at] ?? 0;
      if (this.#isModel) this.#value.add(byte);
      if (this.#place === 'boundary_end') this.#boundaryEnd(byte);
      else if (this.#place === 'headers') this.#header(byte, this.#offset + at);
      else if (this.#place === 'end') this.#afterForm(byte);
      else this.#valueByte(byte, this.#offset + at);
      at += 1;
    }
    this.#offset += chunk.length;
    return this.#state;
  }

  end(): ScanState {
    if (!this.goesOn) return this.#state;
    if (this.#place === 'end') {
      if (this.#state.kind === 'more') this.#state = this.#names?.end() ?? ABSENT;
      return this.#state;
    }
    this.#state = unreadable(
      this.#sawBoundary
        ? 'the form ends before its last boundary'
        : 'the boundary of the content type does not occur in it',
    );
    return this.#state;
  }

  #skipContent(chunk: Uint8Array, from: number): number {
    let at = from;
    let [cr, lf] = [-1, -1];
    while (at < chunk.length && this.#place === 'content' && this.goesOn) {
      if (this.#matched === 0) {
        if (cr < at) cr = indexIn(chunk, CR, at);
        if (lf < at && this.#names !== null) lf = indexIn(chunk, LF, at);
        at = this.#names === null ? cr : Math.min(cr, lf);
        if (at === chunk.length) return at;
      }
      this.#match(chunk[at] ?? 0, this.#offset + at);
      at += 1;
    }
    return at;
  }

  #valueByte(byte: number, position: number): void {
    this.#match(byte, position);
    if (this.#value.isCut && this.#place === 'content') {
      this.#state = unreadable(`its value is longer than ${MODEL_BYTES_MAX} bytes`);
    }
  }

  /** A carriage return occurs in the delimiter only at its start, so no other overlap exists. */
  #match(byte: number, position: number): void {
    if (byte === this.#delimiter[this.#matched]) this.#matched += 1;
    else if (this.#names === null) this.#matched = byte === CR ? 1 : 0;
    else this.#matchBare(byte);
    if (this.#matched < this.#delimiter.length) return;
    if (this.#isBare) this.#state = BARE;
    this.#contentEnd = position + 1 - this.#delimiter.length;
    this.#place = 'boundary_end';
    this.#tailRead = 0;
    this.#last = 0;
  }

  /** Some parsers end a line at either CR or LF, and therefore see other parts. */
  #matchBare(byte: number): void {
    const isBehindCr = this.#matched === 1 && byte === DASH;
    this.#isBare = byte === LF || isBehindCr;
    this.#matched = byte === CR ? 1 : byte === LF ? 2 : isBehindCr ? 3 : 0;
    if (!this.#sawBoundary) this.#state = unreadable('the form does not begin with its boundary');
  }

  /**
   * A boundary is only valid if `--`, or blanks and the end of the line, follow it. Otherwise it is part of a longer
   * word.
   */
  #boundaryEnd(byte: number): void {
    if (this.#tailRead < this.#tail.length) {
      if (byte !== this.#tail[this.#tailRead]) this.#state = BARE;
      this.#tailRead += 1;
      return;
    }
    const last = this.#last;
    const isPadding = last === 0 || last === SPACE || last === TAB;
    this.#last = byte;
    if (last === CR && byte === LF) {
      this.#sawBoundary = true;
      this.#endPart();
      this.#place = 'headers';
      this.#headers.clear();
      // The end of this line and an empty line also end the headers, because a part may have none.
      this.#blank = 2;
    } else if (last === DASH && byte === DASH) {
      this.#endPart();
      this.#place = 'end';
      if (this.#names === null && this.#state.kind === 'more') this.#state = ABSENT;
    } else if (this.#names !== null && (last !== 0 || (byte !== CR && byte !== DASH))) {
      this.#state = BARE;
    } else if (byte === DASH ? last !== 0 : !isPadding || !isLineEnd(byte)) {
      this.#place = 'content';
      this.#matched = byte === CR ? 1 : 0;
    }
  }

  /** Rejects content after the form, which some parsers would still read as a part. */
  #afterForm(byte: number): void {
    const isBlank = isLineEnd(byte) || byte === LF;
    if (!isBlank) this.#state = unreadable('something follows the form');
  }

  #header(byte: number, position: number): void {
    this.#headers.add(byte);
    if (byte === CR) this.#blank = this.#blank === 2 ? 3 : 1;
    else if (byte === LF && this.#blank % 2 === 1) this.#blank += 1;
    else this.#blank = 0;
    if (this.#blank === 4) {
      this.#isModel = this.#isModelField(textOf(this.#headers));
      this.#modelStart = position + 1;
      this.#value.clear();
      this.#place = 'content';
      // A part without content may end here. Some parsers count its empty line as part of the delimiter.
      this.#matched = 2;
      this.#isBare = this.#names !== null;
    } else if (this.#headers.isCut) {
      this.#state = unreadable(`the headers of a part exceed ${PART_HEADERS_BYTES_MAX} bytes`);
    }
  }

  #isModelField(headers: string): boolean {
    if (this.#names === null) return isModelField(headers);
    const field = plainField(headers, matters);
    if (field === null) {
      this.#state = unreadable('the headers of a part can be read in several ways');
      return false;
    }
    const isModel = field.name === 'model';
    const reference = referenceIn(field.name);
    // In a form, `prompt` is always a string.
    if (reference !== null && reference !== PROMPT) this.#names.takeReference(reference);
    const against = this.#names.take(field.name);
    if (against !== null) this.#state = against;
    else if (isModel && !field.isText) this.#state = unreadable('its field is a file or encoded');
    return isModel;
  }

  #endPart(): void {
    if (!this.#isModel) return;
    this.#isModel = false;
    const end = Math.max(this.#contentEnd, this.#modelStart);
    const model = this.#value.text(end - this.#modelStart);
    this.#state =
      model === null
        ? unreadable('its value is not UTF-8')
        : foundAt(model, this.#modelStart, end, this.depth);
  }
}

/** A boundary after a nonstandard line end, or followed by more than the end of its line. */
const BARE = unreadable('its boundary occurs where only some parsers recognize it');

/** Position of a byte from a position onward, or the length of the chunk if it does not occur. */
function indexIn(chunk: Uint8Array, byte: number, from: number): number {
  const at = chunk.indexOf(byte, from);
  return at === -1 ? chunk.length : at;
}

function isLineEnd(byte: number): boolean {
  return byte === SPACE || byte === TAB || byte === CR;
}

/** Some clients send file names in the encoding of their system. */
function textOf(headers: Capture): string {
  return headers.text() ?? latin1.decode(headers.bytes);
}

const latin1 = new TextDecoder('latin1');

function isModelField(headers: string): boolean {
  const { names, isFile } = lenientField(headers);
  return names[0] === 'model' && !isFile;
}
