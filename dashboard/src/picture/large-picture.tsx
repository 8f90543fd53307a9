import { useRef } from 'preact/hooks';
import { sentenceOf } from '../model/sentence.ts';
import { slotsOfGroup } from '../model/slots.ts';
import type { Detail, GroupView, LeaseView } from '../model/status.ts';
import { LargeQueue } from './large-queue.tsx';
import { LargeSlots } from './large-slots.tsx';
import { useFlight } from './use-flight.ts';
import './large.css';

interface LargePictureProps {
  readonly group: GroupView;
  /** null until it arrives. */
  readonly detail: Detail | null;
  /** Milliseconds since `detail` arrived. */
  readonly sinceMs: number;
  readonly usualHoldMs: number | null;
  readonly onOpen: (lease: LeaseView, ageMs: number) => void;
}

export function LargePicture({ group, detail, sinceMs, usualHoldMs, onOpen }: LargePictureProps) {
  const root = useRef<HTMLDivElement>(null);
  useFlight(root);
  const slots = slotsOfGroup(group);
  return (
    <div class="large-picture" role="group" aria-label={sentenceOf(slots, group)} ref={root}>
      <div class="box slots">
        <LargeSlots
          slots={slots}
          unclaimedUntil={group.unclaimed_until}
          leases={detail?.leases ?? []}
          usualHoldMs={usualHoldMs}
          sinceMs={sinceMs}
          onOpen={onOpen}
        />
      </div>
      <span class="into">◂</span>
      <div class="box queue">
        <LargeQueue queue={group} waiters={detail?.waiters ?? []} sinceMs={sinceMs} />
      </div>
    </div>
  );
}
