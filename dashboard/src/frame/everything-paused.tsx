import { api } from '../api.ts';
import { isAllPaused } from '../feed.ts';
import { may } from '../session.ts';
import { confirm } from '../ui/confirm.tsx';
import { complain, say } from '../ui/toasts.tsx';

/** Banner on every page while everything is paused. */
export function EverythingPaused() {
  if (!isAllPaused.value) return null;
  return (
    <p class="all-paused" role="status">
      <strong>Everything is paused.</strong> No group starts new calls.{' '}
      {may('operator') && (
        <button type="button" onClick={() => void resumeEverything()}>
          Resume everything
        </button>
      )}
    </p>
  );
}

/** Pauses the whole deployment, after a confirmation. */
export async function pauseEverything(): Promise<void> {
  const says = (
    <p>
      No group starts new calls until you resume. Calls in flight continue to their end. New calls
      queue, and are rejected when they time out.
    </p>
  );
  if (!(await confirm({ title: 'Pause everything?', says, verb: 'Pause everything' }))) return;
  const result = await api('POST /pause');
  if (result.ok) say('Everything is paused.');
  else complain(result.problem.detail);
}

/** Resumes all groups, except those paused individually. */
export async function resumeEverything(): Promise<void> {
  const result = await api('POST /resume');
  if (result.ok) say('All groups resumed, except those paused individually.');
  else complain(result.problem.detail);
}
