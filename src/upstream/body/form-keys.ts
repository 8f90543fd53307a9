import { isOverrideParameter } from '../operation/method-override.ts';
import { isKeyInField } from '../transfer/gateway-key.ts';

/** A field of a form that contains a gateway key. `field` is its name, or null if the name itself is the key. */
export interface KeyFound {
  readonly field: string | null;
  /** Set if the field contains no key but overrides the request's method, as `_method` does. */
  readonly isMethod?: true;
}

/** Searches a form for gateway keys. The form may be split into chunks anywhere. */
export interface KeyScan {
  /** Scans the next bytes. Returns null if no key was found so far. */
  push(chunk: Uint8Array): KeyFound | null;
  /** Called at the end of the form. */
  end(): KeyFound | null;
  /** Whether the form has reached its own end marker. */
  readonly isDone: boolean;
  /** Number of trailing bytes that belong to a field which may still contain a key. */
  readonly undecidedBytes: number;
}

/** Maximum length of a value that may hold a key. */
export const VALUE_BYTES_MAX = 1_024;

/** Checks a field for a key. Returns null if there is none. */
export function keyIn(name: string, value: string, own: string | null): KeyFound | null {
  if (isKeyInField(name, own)) return { field: null };
  if (isOverrideParameter(name)) return { field: name, isMethod: true };
  return isKeyInField(value, own) ? { field: name } : null;
}
