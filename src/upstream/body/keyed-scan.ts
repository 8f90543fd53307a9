import type { KeyFound, KeyScan } from './form-keys.ts';
import { MORE } from './model-scan.ts';
import type { ModelScan, ScanState } from './model-scan.ts';
import { createMultipartKeyScan } from './multipart-keys.ts';
import { multipartBoundary } from './multipart-scan.ts';
import { createUrlencodedKeyScan } from './urlencoded-keys.ts';

/** PHP ends the type at a comma or a blank, and others take the last type of several. */
const MULTIPART = /(?:^|,)\s*multipart\/form-data(?:[;,\s]|$)/i;
export const URLENCODED = /(?:^|,)\s*application\/x-www-form-urlencoded(?:[;,\s]|$)/i;

/** Another type behind a boundary without quotes, which ends at the comma. */
const BEHIND_BOUNDARY = /(boundary=[^\s",;]{1,200}),.*$/is;

/**
 * The scan for a body of that type, where the call's own key is `own`. Null: it is no form, whose fields
 * alone are looked at. Texts in JSON may speak of keys.
 */
export function keyScanFor(contentType: string, own: string | null): KeyScan | null {
  if (URLENCODED.test(contentType)) return createUrlencodedKeyScan(own);
  if (!MULTIPART.test(contentType)) return null;
  const boundary = multipartBoundary(contentType.replace(BEHIND_BOUNDARY, '$1'));
  return boundary === null ? null : createMultipartKeyScan(boundary, own);
}

/** Whether a body of that type has fields that are looked at. */
export function isForm(contentType: string): boolean {
  return MULTIPART.test(contentType) || URLENCODED.test(contentType);
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
