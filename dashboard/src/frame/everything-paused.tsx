import { api } from '../api.ts';
import { isAllPaused } from '../feed.ts';
import { may } from '../session.ts';
import { confirm } from '../ui/confirm.tsx';
import { complain, say } from '../ui/toasts.tsx';

/** Says on every page that nothing is granted anywhere, for as long as that is so. */
export function EverythingPaused() {
  if (!isAllPaused.value) return null;
  return (
    <p class="all-paused" role="status">
      <strong>Everything is paused.</strong> No group grants anything.{' '}
      {may('operator') && (
        <button type="button" onClick={() => void resumeEverything()}>
          Resume everything
        </button>
      )}
    </p>
  );
}

/** Stops the whole deployment, after a question. */
export async function pauseEverything(): Promise<void> {
  const says = (
    <p>
      No group grants anything until it is resumed, whoever calls. Calls in flight go on to their
      end; new ones wait, and are refused when their time is up.
    </p>
  );
  if (!(await confirm({ title: 'Pause everything?', says, verb: 'Pause everything' }))) return;
  const result = await api('pauseEverything');
  if (result.ok) say('Everything is paused.');
  else complain(result.problem.detail);
}

/** Lets all groups go on that are not paused by themselves. */
export async function resumeEverything(): Promise<void> {
  const result = await api('resumeEverything');
  if (result.ok) say('Groups grant again, but for those that are paused by themselves.');
  else complain(result.problem.detail);
}
