import { nameOf, type CanaryCallEnd } from '../call.ts';
import { outcome, type Check, type CheckOutcome } from '../check.ts';
import { countsOf, listed } from '../figures.ts';
import { CLOSED } from '../groups.ts';
import type { CanaryStage } from '../stage.ts';
import { until } from '../wait.ts';

/** Maximum wait of the calls, which is longer than the check. */
const MAX_WAIT_MS = 1_800_000;

interface ParkedCalls {
  /** Responses to calls that should have continued to wait. */
  readonly answers: string[];
  sent: number;
}

/** Returns the rejections since the start of the object. The number falls only if the object restarts. */
async function refusedSoFar(stage: CanaryStage): Promise<number> {
  const { rejected_total: rejected } = await stage.status(stage.group('memory'));
  return Object.values(rejected).reduce((sum, count) => sum + count, 0);
}

function park(stage: CanaryStage, parked: ParkedCalls, count: number): void {
  const onEnd = (end: CanaryCallEnd): void => void parked.answers.push(nameOf(end));
  const wait = () => stage.send(stage.group('memory'), { maxWaitMs: MAX_WAIT_MS, onEnd });
  for (; parked.sent < count; parked.sent += 1) wait();
}

function judge(most: number, restarts: number, parked: ParkedCalls, lost: number): CheckOutcome {
  const answers = countsOf(parked.answers);
  const figures = { most_waiting: most, restarts, lost, answers };
  const isFull = Object.keys(answers).every((name) => name === '429 queue_full');
  if (restarts === 0 && lost === 0 && isFull) {
    const bound =
      parked.answers.length > 0 ? ', and further calls were rejected with queue_full' : '';
    const found = `${most} calls waited in one pool at once${bound}; the pool never restarted`;
    return outcome(true, found, 'An object has enough memory for a queue of this length.', figures);
  }
  const found = `at most ${most} calls waited; restarts: ${restarts}; lost: ${lost}; responses: ${listed(answers)}`;
  const meaning =
    'Set queue.max_length below this number. Above it, queued calls are lost or rejected.';
  return outcome(false, found, meaning, figures);
}

/** Queues more and more calls in one pool and detects restarts and lost calls. */
export const memory: Check = {
  id: 'memory',
  title: 'Maximum queued calls of one pool',
  needs: ['load'],
  plan: ({ memory: { waiters, stepMs } }) => ({
    calls: Math.max(...waiters) + 1,
    ms: waiters.length * stepMs,
  }),
  groups: () => ({ memory: CLOSED }),
  async run(stage) {
    const { waiters, stepMs } = stage.pace.memory;
    const group = stage.group('memory');
    await stage.send(group).ended;
    let refused = await refusedSoFar(stage);
    const parked: ParkedCalls = { answers: [], sent: 0 };
    let [most, restarts, lost] = [0, 0, 0];
    for (const count of waiters) {
      stage.say(`${count} queued calls`);
      park(stage, parked, count);
      const areThere = async (): Promise<boolean> => {
        const { queued } = await stage.status(group);
        most = Math.max(most, queued);
        lost = Math.max(0, parked.sent - parked.answers.length - queued);
        return lost === 0;
      };
      await until(areThere, { withinMs: stepMs, everyMs: 250, signal: stage.signal });
      const now = await refusedSoFar(stage);
      if (now < refused) restarts += 1;
      refused = now;
      if (restarts > 0 || lost > 0 || parked.answers.length > 0) break;
    }
    return judge(most, restarts, parked, lost);
  },
};
