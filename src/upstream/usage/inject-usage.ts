import { KeyNames } from '../json/json-string.ts';
import type { JsonVisitor, ValueKind, WalkedValue, Want } from '../json/json-syntax.ts';
import { JsonWalk } from '../json/json-walk.ts';

const OPTIONS = 'stream_options';
const INCLUDE = 'include_usage';
const NAMES = new KeyNames(['stream', OPTIONS, INCLUDE]);

/** Length of `false`, the longest literal, plus one, so that no longer word is mistaken for a literal. */
const SCALAR_BYTES = 6;

const ASKS = '{"include_usage":true}';

/**
 * Makes the body of an OpenAI chat call request the usage of its stream. Everything else stays byte for byte the same.
 * Returns null if nothing was changed, because the body already requests it, requests no stream, is not a JSON object,
 * or contains one of the fields twice. If the result is not null, the response must go through `createUsageDrop`.
 */
export function injectUsage(body: Uint8Array): Uint8Array | null {
  const found = new OptionsVisitor();
  const walk = new JsonWalk(found, { form: 'document', keys: NAMES, keepBytesMax: SCALAR_BYTES });
  walk.push(body);
  const rootAt = walk.recordStart;
  if (!found.isOneObject || !isBlank(body.subarray(0, rootAt)) || found.stream !== 'true') {
    return null;
  }
  const { options, include } = found;
  if (options === null) return replaced(body, rootAt + 1, rootAt + 1, `"${OPTIONS}":${ASKS},`);
  if (options.text === 'null') return replaced(body, options.start, options.end, ASKS);
  if (options.text !== null) return null;
  if (include === null) {
    const at = options.start + 1;
    const isEmpty = isClosing(body, at);
    return replaced(body, at, at, `"${INCLUDE}":true${isEmpty ? '' : ','}`);
  }
  if (include.text !== 'false' && include.text !== 'null') return null;
  return replaced(body, include.start, include.end, 'true');
}

interface FoundOption {
  readonly start: number;
  /** Position after the value. Unknown for an object. */
  readonly end: number;
  /** The literal value. null if it is an object. */
  readonly text: string | null;
}

class OptionsVisitor implements JsonVisitor {
  #stream: string | null = null;
  #options: FoundOption | null = null;
  #include: FoundOption | null = null;
  #records = 0;
  #isClear = true;

  get stream(): string | null {
    return this.#stream;
  }

  get options(): FoundOption | null {
    return this.#options;
  }

  get include(): FoundOption | null {
    return this.#include;
  }

  /** Whether the body is one complete object without duplicates of these fields. */
  get isOneObject(): boolean {
    return this.#records === 1 && this.#isClear;
  }

  begin(value: WalkedValue, kind: ValueKind): Want {
    const { depth, start } = value;
    const key = value.key(depth);
    const isWanted = depth === 1 ? key === OPTIONS || key === 'stream' : key === INCLUDE;
    if (!isWanted) return 'skip';
    if (kind === 'scalar') return 'keep';
    if (key === OPTIONS && kind === 'object') {
      this.#add(key, { start, end: start, text: null });
      return 'walk';
    }
    this.#isClear = false;
    return 'skip';
  }

  end(value: WalkedValue): void {
    const { start, end } = value;
    const text = new TextDecoder().decode(value.kept);
    this.#add(value.key(value.depth), { start, end, text });
  }

  record(isWhole: boolean): void {
    this.#records += 1;
    if (!isWhole) this.#isClear = false;
  }

  #add(key: string, found: FoundOption): void {
    if (key === OPTIONS) {
      if (this.#options !== null) this.#isClear = false;
      this.#options = found;
    } else if (key === INCLUDE) {
      if (this.#include !== null) this.#isClear = false;
      this.#include = found;
    } else {
      if (this.#stream !== null) this.#isClear = false;
      this.#stream = found.text;
    }
  }
}

function replaced(body: Uint8Array, from: number, to: number, text: string): Uint8Array {
  const middle = new TextEncoder().encode(text);
  const whole = new Uint8Array(body.length - (to - from) + middle.length);
  whole.set(body.subarray(0, from));
  whole.set(middle, from);
  whole.set(body.subarray(to), from + middle.length);
  return whole;
}

/** Whether there are only blanks or a byte order mark. */
function isBlank(bytes: Uint8Array): boolean {
  return new TextDecoder().decode(bytes).trim() === '';
}

function isClosing(body: Uint8Array, from: number): boolean {
  let at = from;
  while (at < body.length && (body[at] ?? 0) <= 0x20) at += 1;
  return body[at] === 0x7d;
}
