/** A message to whoever uses the page. */
export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isBad: boolean;
}

/** Adds a message as the latest. One that is shown already is not shown twice, however many parts of a page say it. */
export function withToast(shown: readonly Toast[], toast: Toast): readonly Toast[] {
  return [...shown.filter(({ text }) => text !== toast.text), toast];
}
