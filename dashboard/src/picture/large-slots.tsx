import { Fragment, type TargetedKeyboardEvent } from 'preact';
import { useRef } from 'preact/hooks';
import { duration } from '../format.ts';
import { actorOf } from '../model/isolated.ts';
import { isOld, placeLeases, progressOf, type Cells } from '../model/cells.ts';
import { PREFETCHED, orphanedInWords } from '../model/sentence.ts';
import { CELLS_MAX, cellsOf, type Slots } from '../model/slots.ts';
import type { LeaseView } from '../model/status.ts';
import { tintOf } from '../model/tenant-tone.ts';

/** Up to this number, cells are large. */
const FEW = 16;

interface LargeSlotsProps {
  readonly slots: Slots;
  readonly unclaimedUntil: string | null;
  readonly leases: readonly LeaseView[];
  readonly usualHoldMs: number | null;
  /** Milliseconds since the leases were reported. */
  readonly sinceMs: number;
  readonly onOpen: (lease: LeaseView, ageMs: number) => void;
}

export function LargeSlots(props: LargeSlotsProps) {
  return cellsOf(props.slots) > CELLS_MAX ? <Bar {...props} /> : <CellList {...props} />;
}

function CellList(props: LargeSlotsProps) {
  const { slots, unclaimedUntil: orphanedUntil, leases } = props;
  const before = useRef<Cells>([]);
  const cells = placeLeases(before.current, leases, cellsOf(slots));
  before.current = cells;
  // Leases arrive in a separate event. Until then, only their number is known.
  const known = leases.reduce((sum, lease) => sum + lease.slots, 0);
  let unknown = Math.max(0, slots.inUse + slots.cooling - known);
  let { unclaimed, lent } = slots;
  const firstBeyond = cells.length - slots.beyond;
  const firstHeld = cells.findIndex((lease) => lease !== null);
  return (
    <div class={cells.length <= FEW ? 'cells few' : 'cells'} onKeyDown={moveByArrows}>
      {cells.map((lease, i) => {
        const isUnknown = lease === null && unknown-- > 0;
        const isUnclaimed = lease === null && !isUnknown && unclaimed-- > 0;
        const isLent = lease === null && !isUnknown && !isUnclaimed && lent-- > 0;
        return (
          <Fragment key={i}>
            {slots.ceilingAt === i && <span class="ceiling" />}
            <span class={lease === null && i >= firstBeyond ? 'slot beyond' : 'slot'}>
              {isUnknown && <i class="hold unknown" />}
              {isUnclaimed && <i class="hold orphaned" title={orphanedInWords(orphanedUntil)} />}
              {isLent && <i class="hold prefetched" title={PREFETCHED} />}
              {lease !== null && (
                // The key gives each lease its own button, so that a click never hits the lease that follows.
                <Hold key={lease.id} {...props} lease={lease} isFirst={i === firstHeld} />
              )}
            </span>
          </Fragment>
        );
      })}
      {slots.capacity === null && <span class="no-limit">no limit</span>}
    </div>
  );
}

/** Moves the focus between held slots with the arrow keys. Tab stops at the first one only. */
function moveByArrows({ key, target, currentTarget }: TargetedKeyboardEvent<HTMLElement>): void {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[key];
  if (by === undefined) return;
  const holds = [...currentTarget.querySelectorAll<HTMLElement>('button.hold')];
  holds[holds.findIndex((hold) => hold === target) + by]?.focus();
}

interface HoldProps extends Pick<LargeSlotsProps, 'usualHoldMs' | 'sinceMs' | 'onOpen'> {
  readonly lease: LeaseView;
  readonly isFirst: boolean;
}

function Hold({ lease, usualHoldMs, sinceMs, onOpen, isFirst }: HoldProps) {
  const ageMs = lease.age_ms + sinceMs;
  const level = Math.min(1, progressOf(ageMs, usualHoldMs) ?? 1);
  const isCooling = lease.state === 'cooling';
  const old = !isCooling && isOld(ageMs, usualHoldMs) ? 'old' : '';
  const who = actorOf(lease);
  return (
    <button
      type="button"
      tabIndex={isFirst ? 0 : -1}
      aria-label={`Slot of ${who}`}
      onClick={() => onOpen(lease, ageMs)}
      class={`hold ${lease.state} ${old}`}
      style={{ ...tintOf(lease.tenant), '--level': `${Math.round(level * 100)}%` }}
      data-flight={ticketOf(lease)}
      title={`${who}: ${lease.state} for ${duration(ageMs)}${old === '' ? '' : ', much longer than usual'}`}
    />
  );
}

/** The id of a lease is its ticket and the number of the attempt. */
function ticketOf({ id }: LeaseView): string {
  return id.slice(0, id.lastIndexOf('.'));
}

function Bar({ slots, unclaimedUntil }: Pick<LargeSlotsProps, 'slots' | 'unclaimedUntil'>) {
  const cells = cellsOf(slots);
  const part = (kind: string, many: number, title?: string) =>
    many > 0 && <span class={kind} title={title} style={{ width: `${(many / cells) * 100}%` }} />;
  return (
    <div class="slot-bar">
      {part('in-use', slots.inUse)}
      {part('cooling', slots.cooling)}
      {part('orphaned', slots.unclaimed, orphanedInWords(unclaimedUntil))}
      {part('prefetched', slots.lent, PREFETCHED)}
      {part('free', slots.free ?? 0)}
      {slots.ceilingAt !== null && <span class="ceiling" />}
      {part('beyond', slots.beyond)}
    </div>
  );
}
