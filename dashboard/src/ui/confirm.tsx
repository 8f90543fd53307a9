import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import './modal.css';

interface ConfirmDialog {
  readonly title: string;
  /** Describes the effect, with numbers. */
  readonly says: ComponentChildren;
  /** Label of the button, such as `Release`. null for a dialog that only informs. */
  readonly verb: string | null;
  readonly answer: (isSure: boolean) => void;
}

const asked = signal<ConfirmDialog | null>(null);

/** Asks before an action. Resolves with whether it was confirmed. */
export function confirm(question: Omit<ConfirmDialog, 'answer'>): Promise<boolean> {
  return new Promise((resolve) => {
    asked.value = { ...question, answer: resolve };
  });
}

/** Shows information in the same dialog. */
export async function report(what: Pick<ConfirmDialog, 'title' | 'says'>): Promise<void> {
  await confirm({ ...what, verb: null });
}

/** The dialog of `confirm`. Escape cancels. */
export function ConfirmDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const question = asked.value;
  useEffect(() => {
    if (question !== null) dialog.current?.showModal();
  }, [question]);
  if (question === null) return null;
  const close = (): void => {
    question.answer(dialog.current?.returnValue === 'yes');
    asked.value = null;
  };
  return (
    <dialog class="modal" ref={dialog} aria-labelledby="confirm-title" onClose={close}>
      <h2 id="confirm-title">{question.title}</h2>
      <div>{question.says}</div>
      <form method="dialog" class="actions">
        <button type="submit" value="no" autofocus>
          {question.verb === null ? 'Close' : 'Cancel'}
        </button>
        {question.verb !== null && (
          <button type="submit" value="yes" class="danger">
            {question.verb}
          </button>
        )}
      </form>
    </dialog>
  );
}
