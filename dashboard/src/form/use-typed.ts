import { useState } from 'preact/hooks';
import { isSame } from '../model/document.ts';

/**
 * Keeps what somebody types, beside the value that it means: `1.` on the way to `1.5` stays as typed, and a
 * value that comes from elsewhere is written anew.
 */
export function useTyped<Typed>(
  value: unknown,
  { format, parse }: { format: (value: unknown) => Typed; parse: (typed: Typed) => unknown },
  onChange: (value: unknown) => void,
): [Typed, (typed: Typed) => void] {
  const [typed, setTyped] = useState(() => format(value));
  const shown = isSame(parse(typed), value) ? typed : format(value);
  const type = (next: Typed): void => {
    setTyped(next);
    onChange(parse(next));
  };
  return [shown, type];
}
