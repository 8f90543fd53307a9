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

/** Puts one call first, into another lane, or out of the queue. */
export function WaiterActions({ name, waiter }: WaiterActionsProps) {
  const { ticket, tenant } = waiter;
  const whose = isolated(tenant);
  const params = { name, ticket };

  const first = async (): Promise<void> => {
    const result = await api('promoteWaiter', { params, body: {} });
    report(result, `The call of ${whose} goes first.`);
  };
  const move = async (lane: string): Promise<void> => {
    const to = LANES.find((one) => one === lane);
    if (to === undefined || to === waiter.lane) return;
    const result = await api('promoteWaiter', { params, body: { lane: to } });
    report(result, `The call of ${whose} waits in the lane ${to}.`);
  };
  const cancel = async (): Promise<void> => {
    const isSure = await confirm({
      title: 'Take this call out of the queue?',
      says: `The call of ${whose} has waited for ${duration(waiter.waited_ms)}. Its caller is refused with 409 and told not to try again. Nobody else is touched.`,
      verb: 'Take out',
    });
    if (isSure) report(await api('cancelWaiter', { params }), `The call of ${whose} is taken out.`);
  };

  return (
    <span class="row-actions">
      <button
        type="button"
        class="quiet"
        data-focus={`${ticket} first`}
        disabled={waiter.position === 0}
        aria-label={`Put the call of ${tenant} first`}
        onClick={() => void first()}
      >
        First
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
  else if (result.status === 404) say('That call does not wait any more.');
  else complain(`Nothing was done. ${result.problem.detail}`);
}
