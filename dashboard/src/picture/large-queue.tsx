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
  /** Milliseconds since the waiters were told. */
  readonly sinceMs: number;
}

/** Maximum of marks that may be large. */
const FEW = 16;

/** Those who wait, the head at the left, lane by lane: a mark for each, or a count. */
export function LargeQueue({ queue, waiters, sinceMs }: LargeQueueProps) {
  if (queue.queued === 0 && waiters.length === 0) return <p class="nobody">nobody waits</p>;
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
  return `${actorOf(waiter)}: has waited ${duration(waited_ms + sinceMs)} for ${what}, to go: ${rest}`;
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
