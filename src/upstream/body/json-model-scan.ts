import { KEY_BYTES_MAX, KeyNames, textOf } from '../json/json-string.ts';
import {
  isWordByte,
  type JsonVisitor,
  type ValueKind,
  type WalkedValue,
  type Want,
} from '../json/json-syntax.ts';
import { JsonWalk } from '../json/json-walk.ts';
import {
  ABSENT,
  foundAt,
  goesOn,
  isGatewayOptions,
  mayNameOther,
  MODEL_BYTES_MAX,
  BodyModelNames,
  MORE,
  PROMPT,
  referenceIn,
  unreadable,
  type Depth,
  type ModelScan,
  type ScanState,
} from './model-scan.ts';

const QUOTE_BYTES = 1;
const BACKSLASH = 0x5c;
/** The bit by which lower case differs from upper case. */
const LOWER_CASE = 0x20;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;

const MODEL = 'model';
const STREAM = 'stream';
const KEYS = new KeyNames([MODEL, STREAM]);

/**
 * Finds the string under the key `model` at the top level of a JSON object. It checks only the necessary syntax. Other
 * values are skipped, because the upstream validates them.
 *
 * If `model` occurs several times, parsers use the last one, and some accept `Model`. If only the caller's own
 * scheduling depends on the model, the first one is enough, and the rest need not be read. A thorough scan reads the
 * whole body.
 */
export function createJsonModelScan(depth: Depth = 'first'): ModelScan {
  return new JsonModelScan(false, depth);
}

/** As `createJsonModelScan`, and reads whether `stream` is true. A model counts as found only when both are known. */
export function createJsonStreamScan(depth: Depth = 'first'): ModelScan {
  return new JsonModelScan(true, depth);
}

class JsonModelScan implements ModelScan {
  readonly undecidedBytes = 0;
  readonly #depth: Depth;
  readonly #visitor: ModelVisitor;
  readonly #walk: JsonWalk;

  constructor(wantsStream: boolean, depth: Depth) {
    const isThorough = depth === 'thorough';
    this.#depth = depth;
    this.#visitor = new ModelVisitor(wantsStream, depth);
    this.#walk = new JsonWalk(this.#visitor, {
      form: isThorough ? 'strict_object' : 'object',
      keys: KEYS,
      keepBytesMax: MODEL_BYTES_MAX,
      keyBytesMax: isThorough ? MODEL_BYTES_MAX : KEY_BYTES_MAX,
    });
  }

  get isStream(): boolean {
    return this.#visitor.isStream;
  }

  get goesOn(): boolean {
    return goesOn(this.#visitor.state, this.#depth);
  }

  push(chunk: Uint8Array): ScanState {
    if (this.goesOn) this.#walk.push(chunk);
    return this.#visitor.state;
  }

  end(): ScanState {
    if (this.goesOn) this.#visitor.endText(this.#walk.depth > 0);
    return this.#visitor.state;
  }
}

class ModelVisitor implements JsonVisitor {
  readonly #depth: Depth;
  /** null if the first model is enough. */
  readonly #names: BodyModelNames | null;
  /** Whether `stream` has not been found yet. */
  #wantsStream: boolean;
  #isStream = false;
  #state: ScanState = MORE;
  /** The model, while `stream` has not been found. */
  #found: ScanState | null = null;
  #isBehindObject = false;
  /** The last key, if it may refer to a model. */
  #reference: string | null = null;
  /** Whether the last key at the top level contains options for a gateway. */
  #isOfOptions = false;

  constructor(wantsStream: boolean, depth: Depth) {
    this.#depth = depth;
    this.#names = depth === 'thorough' ? new BodyModelNames() : null;
    this.#wantsStream = wantsStream;
  }

  get state(): ScanState {
    return this.#state;
  }

  get isStream(): boolean {
    return this.#isStream;
  }

  key(value: WalkedValue): void {
    if (this.#names === null) return;
    const { keyBytes, depth } = value;
    this.#reference = null;
    if (depth === 1) this.#isOfOptions = false;
    if (keyBytes === null || isPlainOther(keyBytes)) return;
    const key = textOf(keyBytes);
    if (depth > 1) {
      if (key !== null && !mayNameOther(key)) return;
      return this.#conclude(unreadable('its options for a gateway may name another model'), value);
    }
    this.#isOfOptions = key !== null && isGatewayOptions(key);
    this.#reference = key === null ? null : referenceIn(key);
    const against =
      key === null
        ? unreadable('one of its keys is not a valid JSON string')
        : this.#names.take(key);
    if (against !== null) this.#conclude(against, value);
  }

  begin(value: WalkedValue, kind: ValueKind): Want {
    if (this.#isOfOptions) return kind === 'object' || kind === 'array' ? 'walk' : 'skip';
    this.#takeReference(value, kind);
    const key = value.key(1);
    if (key === MODEL && this.#found === null) {
      if (kind === 'string') return 'keep';
      if (this.#names === null) this.#conclude(ABSENT, value);
      // `null` counts as absent.
      else if (value.firstByte !== LETTER_N) this.#names.takeNoText();
    } else if (key === STREAM && this.#wantsStream && isWordByte(value.firstByte)) {
      this.#isStream = value.firstByte === LETTER_T;
      this.#wantsStream = false;
      if (this.#found !== null) this.#conclude(this.#found, value);
    }
    return 'skip';
  }

  /** `null` is not a reference, and a prompt that is a string does not refer to a stored one. */
  #takeReference({ firstByte }: WalkedValue, kind: ValueKind): void {
    const field = this.#reference;
    if (field === null) return;
    this.#reference = null;
    if (field === PROMPT ? kind !== 'object' : firstByte === LETTER_N) return;
    this.#names?.takeReference(field === PROMPT ? 'prompt.id' : field);
  }

  /** Reads the model, the only value that is kept. */
  end(value: WalkedValue): void {
    const start = value.start + QUOTE_BYTES;
    const end = value.end - QUOTE_BYTES;
    const model = end - start > MODEL_BYTES_MAX ? null : textOf(value.kept);
    if (model === null) {
      const why = `its value is not a JSON string of at most ${MODEL_BYTES_MAX} bytes`;
      this.#conclude(unreadable(why), value);
      return;
    }
    this.#found = foundAt(model, start, end, this.#depth);
    if (!this.#wantsStream) this.#conclude(this.#found, value);
  }

  record(isWhole: boolean, value: WalkedValue): void {
    if (!isWhole) this.#state = unreadable('the JSON is malformed');
    else if (this.#names === null) this.#conclude(this.#found ?? ABSENT, value);
    // Some parsers would read another value after it.
    else this.#isBehindObject = true;
  }

  stray(): void {
    if (this.#isBehindObject) this.#state = unreadable('something follows the JSON');
    else if (this.#names === null) this.#state = ABSENT;
    // UTF-16 or another encoding, a form with the wrong content type, or not an object.
    else this.#state = unreadable('it is not a JSON object in UTF-8');
  }

  /** Called at the end of the text if the state is not final yet. */
  endText(isOpen: boolean): void {
    const found = isOpen && this.#names !== null ? null : this.#found;
    const absent = isOpen ? unreadable('the JSON ends too early') : (this.#names?.end() ?? ABSENT);
    this.#state = found ?? absent;
  }

  #conclude(state: ScanState, value: WalkedValue): void {
    this.#state = state;
    if (!goesOn(state, this.#depth)) value.leave();
  }
}

const FIRST_LETTERS: ReadonlySet<number> = new Set(
  [
    'model',
    'fallbacks',
    'prompt',
    'agent',
    'bot',
    'context',
    'deployment',
    'engine',
    'inference',
    'retrieve',
    'user',
    'workflow',
  ].map((name) => name.charCodeAt(0)),
);

/** Whether a key is plain ASCII and starts unlike all relevant names. Most keys do, and need no decoding. */
function isPlainOther(key: Uint8Array): boolean {
  if (FIRST_LETTERS.has((key[0] ?? 0) | LOWER_CASE)) return false;
  return key.every((byte) => byte >= 0x20 && byte < 0x7f && byte !== BACKSLASH);
}

const encoder = new TextEncoder();

function scanned(body: Uint8Array): ScanState {
  const scan = createJsonModelScan();
  const pushed = scan.push(body);
  return pushed.kind === 'more' ? scan.end() : pushed;
}

/** Returns a JSON body with another model name, otherwise byte for byte the same. Returns null if it names no model. */
export function renameModel(body: Uint8Array, model: string): Uint8Array | null {
  const state = scanned(body);
  if (state.kind !== 'found') return null;
  // The name is inserted between the existing quotes.
  const name = encoder.encode(JSON.stringify(model).slice(1, -1));
  const renamed = new Uint8Array(body.length - (state.end - state.start) + name.length);
  renamed.set(body.subarray(0, state.start));
  renamed.set(name, state.start);
  renamed.set(body.subarray(state.end), state.start + name.length);
  return renamed;
}
