import { isAllPaused } from '../../feed.ts';
import { pauseEverything, resumeEverything } from '../../frame/everything-paused.tsx';

export function EverythingSwitch() {
  return (
    <section aria-labelledby="several-everything">
      <h2 id="several-everything">Everything</h2>
      <p class="help">
        Pauses all groups, including automatic and future ones. Calls in flight continue to the end.
        New calls queue until you resume, and are rejected when they time out.
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
