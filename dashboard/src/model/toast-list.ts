export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isBad: boolean;
}

/** Appends a message. A message with the same text is replaced, however many parts of a page report it. */
export function withToast(shown: readonly Toast[], toast: Toast): readonly Toast[] {
  return [...shown.filter(({ text }) => text !== toast.text), toast];
}
