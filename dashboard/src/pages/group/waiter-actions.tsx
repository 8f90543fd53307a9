import { LANES } from '../../../../src/core/words/ticket.ts';
import { api } from '../../api.ts';
import { duration } from '../../format.ts';
import { isolated } from '../../model/isolated.ts';
import type { WaiterView } from '../../model/status.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';

interface WaiterActionsProps {
  readonly name: string;
  readonly waiter: WaiterView;
}

/** Moves a queued call to the front or to another lane, or cancels it. */
export function WaiterActions({ name, waiter }: WaiterActionsProps) {
  const { ticket, tenant } = waiter;
  const tenantName = isolated(tenant);
  const params = { name, ticket };

  const first = async (): Promise<void> => {
    const result = await api('POST /groups/{name}/waiters/{ticket}/promote', { params, body: {} });
    report(result, `The call of ${tenantName} is at the front of the queue.`);
  };
  const move = async (lane: string): Promise<void> => {
    const to = LANES.find((one) => one === lane);
    if (to === undefined || to === waiter.lane) return;
    const result = await api('POST /groups/{name}/waiters/{ticket}/promote', {
      params,
      body: { lane: to },
    });
    report(result, `The call of ${tenantName} is in lane ${to}.`);
  };
  const cancel = async (): Promise<void> => {
    const isSure = await confirm({
      title: 'Remove this call from the queue?',
      says: `The call of ${tenantName} has waited for ${duration(waiter.waited_ms)}. Its caller receives 409 and should not retry. Other calls are not affected.`,
      verb: 'Remove call',
    });
    if (!isSure) return;
    report(
      await api('DELETE /groups/{name}/waiters/{ticket}', { params }),
      `The call of ${tenantName} is cancelled.`,
    );
  };

  return (
    <span class="row-actions">
      <button
        type="button"
        class="quiet"
        data-focus={`${ticket} first`}
        disabled={waiter.position === 0}
        aria-label={`Move to front: the call of ${tenant}`}
        onClick={() => void first()}
      >
        To front
      </button>
      <select
        data-focus={`${ticket} lane`}
        aria-label={`Lane of the call of ${tenant}`}
        value={waiter.lane}
        onChange={({ currentTarget }) => void move(currentTarget.value)}
      >
        {LANES.map((lane) => (
          <option value={lane} key={lane}>
            {lane}
          </option>
        ))}
      </select>
      <button
        type="button"
        class="quiet danger"
        data-focus={`${ticket} cancel`}
        aria-label={`Cancel the call of ${tenant}`}
        onClick={() => void cancel()}
      >
        Cancel
      </button>
    </span>
  );
}

type ActionResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly status: number; readonly problem: { readonly detail: string } };

function report(result: ActionResult, done: string): void {
  if (result.ok) say(done);
  else if (result.status === 404) say('That call is no longer queued.');
  else complain(`Nothing was changed. ${result.problem.detail}`);
}
