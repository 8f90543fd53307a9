import { anyBoundary, mayBeMultipart, mayBeUrlencoded } from './content-type.ts';
import type { KeyFound, KeyScan } from './form-keys.ts';
import { MORE } from './model-scan.ts';
import type { ModelScan, ScanState } from './model-scan.ts';
import { createMultipartKeyScan } from './multipart-keys.ts';
import { createUrlencodedKeyScan } from './urlencoded-keys.ts';

/**
 * The scan for a body of that type, where the call's own key is `own`. Null: it is no form, whose fields
 * alone are looked at. Texts in JSON may speak of keys.
 */
export function keyScanFor(contentType: string, own: string | null): KeyScan | null {
  if (mayBeUrlencoded(contentType)) return createUrlencodedKeyScan(own);
  if (!mayBeMultipart(contentType)) return null;
  const boundary = anyBoundary(contentType);
  return boundary === null ? null : createMultipartKeyScan(boundary, own);
}

/** Whether a body of that type has fields that are looked at. */
export function isForm(contentType: string): boolean {
  return mayBeMultipart(contentType) || mayBeUrlencoded(contentType);
}

/** Looks for keys beside the model, if that is looked for. */
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
