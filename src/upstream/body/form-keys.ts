import { isOverrideParameter } from '../operation/method-override.ts';
import { isKeyInField } from '../transfer/gateway-key.ts';

/** A field of a form that holds a gateway key: its name, or null if the key is the name. */
export interface KeyFound {
  readonly field: string | null;
  /** It holds no key but names another method, as `_method` does. Absent: it holds a key. */
  readonly isMethod?: true;
}

/** Looks for gateway keys in a form that comes in chunks, whatever their borders. */
export interface KeyScan {
  /** Takes the next bytes. Null: no key yet. */
  push(chunk: Uint8Array): KeyFound | null;
  /** The form has ended. */
  end(): KeyFound | null;
  /** Whether the form has ended by its own account. */
  readonly isDone: boolean;
  /** Bytes at the end of what was pushed that belong to a field which may still hold a key. */
  readonly undecidedBytes: number;
}

/** Maximum length of a value that may hold a key. */
export const VALUE_BYTES_MAX = 1_024;

/** Finds the key in a field, as far as its name and its value are known; null: there is none. */
export function keyIn(name: string, value: string, own: string | null): KeyFound | null {
  if (isKeyInField(name, own)) return { field: null };
  if (isOverrideParameter(name)) return { field: name, isMethod: true };
  return isKeyInField(value, own) ? { field: name } : null;
}
