import { anyBoundary, mayBeMultipart, mayBeUrlencoded } from './content-type.ts';
import type { KeyFound, KeyScan } from './form-keys.ts';
import { MORE } from './model-scan.ts';
import type { ModelScan, ScanState } from './model-scan.ts';
import { createMultipartKeyScan } from './multipart-keys.ts';
import { createUrlencodedKeyScan } from './urlencoded-keys.ts';

/**
 * The key scan for a body of a content type, where `own` is the call's own key. Returns null if the body is not a form.
 * Only the fields of forms are scanned, because text in JSON may mention keys.
 */
export function keyScanFor(contentType: string, own: string | null): KeyScan | null {
  if (mayBeUrlencoded(contentType)) return createUrlencodedKeyScan(own);
  if (!mayBeMultipart(contentType)) return null;
  const boundary = anyBoundary(contentType);
  return boundary === null ? null : createMultipartKeyScan(boundary, own);
}

/** Whether the fields of a body of this type are scanned. */
export function isForm(contentType: string): boolean {
  return mayBeMultipart(contentType) || mayBeUrlencoded(contentType);
}

/** Searches for keys, and for the model if that is needed. */
export class KeyedScan implements ModelScan {
  readonly #model: ModelScan | null;
  readonly #keys: KeyScan;
  #state: ScanState = MORE;

  constructor(model: ModelScan | null, keys: KeyScan) {
    this.#model = model;
    this.#keys = keys;
  }

  get isStream(): boolean {
    return this.#model?.isStream === true;
  }

  get goesOn(): boolean {
    return this.#state.kind !== 'key' && (!this.#keys.isDone || this.#model?.goesOn === true);
  }

  get undecidedBytes(): number {
    return this.#keys.undecidedBytes;
  }

  push(chunk: Uint8Array): ScanState {
    return this.#take(this.#keys.push(chunk), (model) => model.push(chunk));
  }

  end(): ScanState {
    return this.#take(this.#keys.end(), (model) => model.end());
  }

  #take(found: KeyFound | null, scanned: (model: ModelScan) => ScanState): ScanState {
    if (this.#state.kind === 'key') return this.#state;
    if (found !== null) this.#state = { kind: 'key', ...found };
    else if (this.#model?.goesOn === true) this.#state = scanned(this.#model);
    return this.#state;
  }
}
