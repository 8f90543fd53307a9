import { useEffect, useRef } from 'preact/hooks';
import { SignInForm } from './sign-in-form.tsx';

/** Hides the page until somebody has signed in again, who finds what was typed where it was. */
export function SessionEnded() {
  const dialog = useRef<HTMLDialogElement>(null);
  const show = (): void => dialog.current?.showModal();
  useEffect(show, []);
  return (
    <dialog ref={dialog} class="session-ended" aria-labelledby="ended-title" onClose={show}>
      <h2 id="ended-title">Your session has ended</h2>
      <p>Sign in again, and go on where you were.</p>
      <SignInForm />
    </dialog>
  );
}
