import { useEffect, useRef } from 'preact/hooks';
import { resting, wake } from '../idle-page.ts';

/** Dialog of a page without input. Closing it resumes live updates, also with Escape. */
export function StillLooking() {
  const dialog = useRef<HTMLDialogElement>(null);
  const isAsked = resting.value === 'unused';
  useEffect(() => {
    if (isAsked) dialog.current?.showModal();
  }, [isAsked]);
  if (!isAsked) return null;
  return (
    <dialog ref={dialog} aria-labelledby="still-title" onClose={wake}>
      <h2 id="still-title">Live updates paused</h2>
      <p>
        This page had no input for half an hour. An open dashboard costs requests, so it stopped
        updating. The data shown is from that time.
      </p>
      <form method="dialog" class="actions">
        <button type="submit" class="primary" autofocus>
          Resume updates
        </button>
      </form>
    </dialog>
  );
}
