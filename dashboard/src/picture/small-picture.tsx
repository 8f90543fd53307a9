import { sentenceOf } from '../model/sentence.ts';
import type { Slots } from '../model/slots.ts';
import type { GroupView } from '../model/status.ts';
import { BAND, WIDTH } from './shapes.ts';
import { SmallQueue } from './small-queue.tsx';
import { SmallSlots } from './small-slots.tsx';
import './picture.css';

/** Distance from the top of the slots to the top of the queue. */
const QUEUE_TOP = 26;

interface SmallPictureProps {
  readonly slots: Slots;
  readonly queue: Pick<GroupView, 'queued' | 'queued_by_lane' | 'oldest_wait_ms'>;
}

/** Slots above and queue below, drawn from counts. Only the page of a group has its leases and waiters. */
export function SmallPicture({ slots, queue }: SmallPictureProps) {
  return (
    <svg
      class="picture small"
      role="img"
      aria-label={sentenceOf(slots, queue)}
      viewBox={`-1 -2 ${WIDTH + 2} ${QUEUE_TOP + BAND + 4}`}
    >
      <SmallSlots slots={slots} />
      <g transform={`translate(0 ${QUEUE_TOP})`}>
        <SmallQueue queued={queue.queued_by_lane} />
      </g>
    </svg>
  );
}
