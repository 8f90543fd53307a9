import { emptyControls } from '../../../src/core/member.ts';
import type { BoundRow } from '../../../src/core/parts/bound.ts';
import type { StoredControls, GroupWrite } from '../../../src/core/writes.ts';
import type { Stored } from '../../../src/core/recover.ts';
import { START } from '../../support/core-builders.ts';

/** How long the ring keeps a row at least. Here it keeps none any longer. */
const RING_MS = 30_000;

/** A write as it goes to the disk: as it was when it was issued, whatever the instance does since. */
export interface DiskWrite {
  readonly bound: BoundRow;
  readonly kept: string | null;
}

interface DiskRingRow {
  readonly at: number;
  readonly bound: BoundRow;
}

/** The disk of a group, which only the newest instance can write. Times are those in which somebody could act. */
export class FleetDisk {
  /** The number of the instance that was loaded last. */
  owner = 0;
  #ring: DiskRingRow[] = [];
  #kept: { readonly bound: BoundRow; readonly kept: string } | null = null;

  /** Slots that may be held by what is written. */
  get mark(): number {
    return this.#last()?.mark ?? 0;
  }

  land({ bound, kept }: DiskWrite, at: number): void {
    if (kept === null) this.#ring.push({ at, bound });
    else this.#kept = { bound, kept };
  }

  load(at: number): Stored {
    const last = this.#last();
    this.#ring = this.#ring.filter((row) => row.at > at - RING_MS || row.bound === last);
    const rows = this.#ring.map(({ bound }) => bound);
    if (this.#kept !== null) rows.push(this.#kept.bound);
    const ended = rows.flatMap((row) => row.ended);
    const lapsed = rows.flatMap((row) => row.lapsed);
    const kept = this.#kept === null ? null : (JSON.parse(this.#kept.kept) as StoredControls);
    return {
      bound: last === null ? null : { ...last, ended, lapsed },
      untold: last === this.#kept?.bound ? last.ended : [],
      controls: kept?.controls ?? emptyControls(START),
      ahead: kept?.ahead ?? {},
      ...(kept?.members !== undefined && { members: kept.members }),
    };
  }

  #last(): BoundRow | null {
    const ofRing = this.#ring.at(-1)?.bound ?? null;
    const ofKept = this.#kept?.bound ?? null;
    if (ofRing === null || ofKept === null) return ofRing ?? ofKept;
    return ofKept.seq > ofRing.seq ? ofKept : ofRing;
  }
}

/** Makes what goes to the disk of a group's write. */
export function diskWriteOf({ bound, kept }: GroupWrite): DiskWrite {
  return { bound, kept: kept === null ? null : JSON.stringify(kept) };
}
