import { emptyControls } from '../../src/core/member.ts';
import type { BoundRow } from '../../src/core/parts/bound.ts';
import type { Stored } from '../../src/core/recover.ts';
import type { GroupWrite, StoredControls } from '../../src/core/writes.ts';
import { keptControls, START } from '../support/core-builders.ts';

/** A write on its way, and all that its rows said when it was issued. */
interface DiskSent {
  readonly bound: BoundRow;
  readonly isInRing: boolean;
  readonly kept: Pick<Stored, 'controls' | 'ahead' | 'members'> | null;
  readonly arrivesAt: number;
}

/** Copies the controls as they are read from their row. */
function copyOf(kept: StoredControls): NonNullable<DiskSent['kept']> {
  const { ahead, members } = kept;
  const ofMembers = members === undefined ? {} : { members: structuredClone(members) };
  return { controls: keptControls(kept), ahead: { ...ahead }, ...ofMembers };
}

/** The disk of a group as a later instance finds it: its writes arrive in their order, or are lost. */
export class Disk {
  /** How long a write takes. */
  lagMs = 0;
  #onTheWay: DiskSent[] = [];
  #last: BoundRow | null = null;
  /** Leases that ended by the rows of the ring, and by the one beside the controls, which is written over. */
  #endedInRing: BoundRow['ended'] = [];
  #endedInKept: BoundRow['ended'] = [];
  #isLastKept = false;
  /** The number of the last write of the controls that has arrived. 0 if there is none. */
  learnedBy = 0;
  #lapsedInRing: BoundRow['lapsed'] = [];
  #lapsedInKept: BoundRow['lapsed'] = [];
  #kept: Pick<Stored, 'controls' | 'ahead' | 'members'> = {
    controls: emptyControls(START),
    ahead: {},
  };

  send({ bound, isInRing, kept }: GroupWrite, now: number): void {
    const copy = kept === null ? null : copyOf(kept);
    const arrivesAt = Math.max(now + this.lagMs, this.#onTheWay.at(-1)?.arrivesAt ?? 0);
    this.#onTheWay.push({ bound, isInRing, kept: copy, arrivesAt });
  }

  /** When the next write arrives; Infinity: none is on its way. */
  get nextArrivalAt(): number {
    return this.#onTheWay[0]?.arrivesAt ?? Infinity;
  }

  /** When the last write arrives; -Infinity: none is on its way. */
  get lastArrivalAt(): number {
    return this.#onTheWay.at(-1)?.arrivesAt ?? -Infinity;
  }

  /** Lets the oldest write arrive. Returns its number. */
  arrive(): number | null {
    const sent = this.#onTheWay.shift();
    if (sent === undefined) return null;
    this.#last = sent.bound;
    this.#isLastKept = sent.kept !== null;
    if (sent.isInRing) {
      this.#endedInRing = [...this.#endedInRing, ...sent.bound.ended];
      this.#lapsedInRing = [...this.#lapsedInRing, ...sent.bound.lapsed];
    }
    if (sent.kept !== null) {
      this.#kept = sent.kept;
      this.learnedBy = sent.bound.seq;
      this.#endedInKept = sent.bound.ended;
      this.#lapsedInKept = sent.bound.lapsed;
    }
    return sent.bound.seq;
  }

  /** The writer is lost, and of its writes on their way the last few. The others arrive. */
  lose(count: number): void {
    const arriving = Math.max(0, this.#onTheWay.length - count);
    for (let index = 0; index < arriving; index += 1) this.arrive();
    this.#onTheWay = [];
  }

  /** The number of the last write that has arrived; 0: none. */
  get seq(): number {
    return this.#last?.seq ?? 0;
  }

  /** Slots that are marked. */
  get mark(): number {
    return this.#last?.mark ?? 0;
  }

  /** Slots that are marked at a member. */
  markAt(member: string): number {
    return Object.entries(this.#last?.members ?? {}).find(([id]) => id === member)?.[1].mark ?? 0;
  }

  read(): Stored {
    const ended = [...this.#endedInRing, ...this.#endedInKept];
    const lapsed = [...this.#lapsedInRing, ...this.#lapsedInKept];
    const bound = this.#last === null ? null : { ...this.#last, ended, lapsed };
    const untold = this.#isLastKept ? this.#endedInKept : [];
    return structuredClone({ bound, untold, ...this.#kept, leases: [] });
  }
}
