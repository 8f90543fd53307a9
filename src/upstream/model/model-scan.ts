/** Where a scan stands after the bytes it was given. All but `more` is final. */
export type ScanState =
  | { readonly kind: 'more' }
  /** `start` and `end` bound the bytes of the value in the body, without its quotes. */
  | {
      readonly kind: 'found';
      readonly model: string;
      readonly start: number;
      readonly end: number;
    }
  /** The body has no model, or one that is not a text. */
  | { readonly kind: 'absent' }
  /** `why` continues the sentence "The model could not be read: …". */
  | { readonly kind: 'unreadable'; readonly why: string };

/** Looks for the model in a body that comes in chunks, whatever their borders. */
export interface ModelScan {
  /** Takes the next bytes. Changes nothing once the state is final. */
  push(chunk: Uint8Array): ScanState;
  /** The body has ended: the state is final from here on. */
  end(): ScanState;
  /** Whether the body asks for a stream, as far as the scan was asked to look for that. */
  readonly isStream: boolean;
}

export const MORE: ScanState = { kind: 'more' };
export const ABSENT: ScanState = { kind: 'absent' };

/** A model's name longer than this many bytes is taken for a mistake: it would travel in every ticket. */
export const MODEL_BYTES_MAX = 1_024;

/** The state of a scan that cannot go on. */
export function unreadable(why: string): ScanState {
  return { kind: 'unreadable', why };
}

/** Bytes kept while a name or a value passes by, up to a bound: no allocation per byte. */
export class Capture {
  readonly #bytes: Uint8Array;
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytes = new Uint8Array(bytesMax);
  }

  clear(): void {
    this.#length = 0;
  }

  add(byte: number): void {
    if (this.#length < this.#bytes.length) this.#bytes[this.#length] = byte;
    this.#length += 1;
  }

  /** Bytes that passed by, those beyond the bound included. */
  get length(): number {
    return this.#length;
  }

  /** Whether more passed by than could be kept. */
  get isCut(): boolean {
    return this.#length > this.#bytes.length;
  }

  /** What was kept, or the first `bytes` of it, as text; null: not UTF-8. */
  text(bytes = this.#length): string | null {
    try {
      return utf8.decode(this.#bytes.subarray(0, bytes));
    } catch {
      return null;
    }
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
