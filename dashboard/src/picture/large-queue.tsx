import { count, duration } from '../format.ts';
import { actorOf } from '../model/isolated.ts';
import { estimateInWords, waitInWords } from '../model/sentence.ts';
import { MARKS_MAX, sectionsOf } from '../model/queue.ts';
import type { GroupView, WaiterView } from '../model/status.ts';
import { tintOf } from '../model/tenant-tone.ts';
import { LANES } from '../../../src/core/words/ticket.ts';

interface LargeQueueProps {
  readonly queue: Pick<GroupView, 'queued' | 'queued_by_lane' | 'paused'>;
  readonly waiters: readonly WaiterView[];
  /** Milliseconds since the waiters were reported. */
  readonly sinceMs: number;
}

/** Up to this number, marks are large. */
const FEW = 16;

/** Queued calls by lane, the next call on the left: one mark each, or a count. */
export function LargeQueue({ queue, waiters, sinceMs }: LargeQueueProps) {
  if (queue.queued === 0 && waiters.length === 0) return <p class="no-calls">no queued calls</p>;
  if (queue.queued > MARKS_MAX || waiters.length === 0) return <Counts queue={queue} />;
  return (
    <>
      {sectionsOf(waiters).map(({ lane, marks }) => (
        <div class="lane" key={lane}>
          <small>{lane}</small>
          <div class={waiters.length <= FEW ? 'marks few' : 'marks'}>
            {marks.map((waiter) => (
              <i
                key={waiter.ticket}
                class={`mark ${lane}`}
                style={tintOf(waiter.tenant)}
                data-flight={waiter.ticket}
                title={titleOf(waiter, sinceMs, queue.paused)}
              />
            ))}
          </div>
        </div>
      ))}
    </>
  );
}

function titleOf(waiter: WaiterView, sinceMs: number, isPaused: boolean): string {
  const { waited_ms, estimate_ms } = waiter;
  const rest = estimateInWords(estimate_ms, sinceMs, isPaused);
  const what = waitInWords(waiter);
  return `${actorOf(waiter)}: queued for ${duration(waited_ms + sinceMs)}, waits for ${what}, estimate: ${rest}`;
}

function Counts({ queue }: { readonly queue: LargeQueueProps['queue'] }) {
  const lanes = LANES.filter((lane) => queue.queued_by_lane[lane] > 0);
  return (
    <>
      {lanes.map((lane) => (
        <div class="lane" key={lane}>
          <small>{lane}</small>
          <div class="marks">
            <i class={`mark ${lane}`} /> × {count(queue.queued_by_lane[lane])}
          </div>
        </div>
      ))}
    </>
  );
}
