import { useState } from 'preact/hooks';
import { isSame } from '../model/document.ts';

/**
 * Keeps the typed text next to its value, so that `1.` stays as typed on the way to `1.5`. A value that changes
 * elsewhere replaces the text.
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
