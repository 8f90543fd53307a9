import { useEffect, useRef } from 'preact/hooks';
import { SignInForm } from './sign-in-form.tsx';

/** Covers the page until the user signs in again. The page keeps all input. */
export function SessionEnded() {
  const dialog = useRef<HTMLDialogElement>(null);
  const show = (): void => dialog.current?.showModal();
  useEffect(show, []);
  return (
    <dialog ref={dialog} class="session-ended" aria-labelledby="ended-title" onClose={show}>
      <h2 id="ended-title">Your session has ended</h2>
      <p>Sign in again to continue where you left off.</p>
      <SignInForm />
    </dialog>
  );
}
