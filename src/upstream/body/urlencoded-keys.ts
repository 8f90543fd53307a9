import { unescaped } from '../transfer/gateway-key.ts';
import { keyIn, VALUE_BYTES_MAX } from './form-keys.ts';
import type { KeyFound, KeyScan } from './form-keys.ts';
import { Capture } from './model-scan.ts';

const AND = 0x26;
/** Some servers (Rack) also split a form at semicolons. */
const SEMICOLON = 0x3b;
const EQUALS = 0x3d;

/** Maximum bytes of a name, because each byte may be written as `%68`. */
const ESCAPED_BYTES_MAX = 3 * VALUE_BYTES_MAX;

/** Searches the fields of application/x-www-form-urlencoded for gateway keys. */
export function createUrlencodedKeyScan(own: string | null): KeyScan {
  return new UrlencodedKeyScan(own);
}

class UrlencodedKeyScan implements KeyScan {
  /** The format has no end marker. */
  readonly isDone = false;
  readonly #own: string | null;
  readonly #name = new Capture(ESCAPED_BYTES_MAX);
  readonly #value = new Capture(ESCAPED_BYTES_MAX);
  #isValue = false;
  #found: KeyFound | null = null;

  constructor(own: string | null) {
    this.#own = own;
  }

  get undecidedBytes(): number {
    if (this.#value.isCut) return 0;
    const name = this.#name.isCut ? 0 : this.#name.length;
    return this.#isValue ? name + 1 + this.#value.length : name;
  }

  push(chunk: Uint8Array): KeyFound | null {
    for (const byte of chunk) {
      if (this.#found !== null) break;
      if (byte === AND || byte === SEMICOLON) this.#endField();
      else if (byte === EQUALS && !this.#isValue) this.#isValue = true;
      else this.#take(this.#isValue ? this.#value : this.#name, byte);
    }
    return this.#found;
  }

  end(): KeyFound | null {
    this.#endField();
    return this.#found;
  }

  #take(into: Capture, byte: number): void {
    if (into.isCut) return;
    into.add(byte);
    // The part that was read is enough to decide whether it is a key.
    if (into.isCut) this.#judge();
  }

  #endField(): void {
    this.#judge();
    this.#isValue = false;
    this.#name.clear();
    this.#value.clear();
  }

  #judge(): void {
    this.#found ??= keyIn(textOf(this.#name), textOf(this.#value), this.#own);
  }
}

function textOf(capture: Capture): string {
  return unescaped(new TextDecoder().decode(capture.bytes).replaceAll('+', ' '));
}
