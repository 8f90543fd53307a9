import { useEffect, useRef } from 'preact/hooks';
import { resting, wake } from '../idle-page.ts';

/** Asks whether somebody still looks, and goes on when it is answered, with Escape too. */
export function StillLooking() {
  const dialog = useRef<HTMLDialogElement>(null);
  const isAsked = resting.value === 'unused';
  useEffect(() => {
    if (isAsked) dialog.current?.showModal();
  }, [isAsked]);
  if (!isAsked) return null;
  return (
    <dialog ref={dialog} aria-labelledby="still-title" onClose={wake}>
      <h2 id="still-title">Still looking?</h2>
      <p>
        Nobody has touched this page for half an hour, so it has stopped following what happens: a
        page that is open costs as much as calls do. What it shows is from then.
      </p>
      <form method="dialog" class="actions">
        <button type="submit" class="primary" autofocus>
          Go on
        </button>
      </form>
    </dialog>
  );
}
