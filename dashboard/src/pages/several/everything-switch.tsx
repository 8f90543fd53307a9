import { isAllPaused } from '../../feed.ts';
import { pauseEverything, resumeEverything } from '../../frame/everything-paused.tsx';

/** Stops the whole deployment, and lets it go on. */
export function EverythingSwitch() {
  return (
    <section aria-labelledby="several-everything">
      <h2 id="several-everything">Everything</h2>
      <p class="help">
        Stops all groups, automatic ones and those to come included. What is in flight goes on to
        its end, calls wait until it is over or their time is up.
      </p>
      {isAllPaused.value ? (
        <button type="button" onClick={() => void resumeEverything()}>
          Resume everything
        </button>
      ) : (
        <button type="button" class="danger" onClick={() => void pauseEverything()}>
          Pause everything
        </button>
      )}
    </section>
  );
}
