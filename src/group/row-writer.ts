import type { GroupState } from '../core/state.ts';
import { lostAt } from '../core/parts/bound.ts';
import type { InstantMs } from '../core/words/ids.ts';
import { slotsHeld } from '../core/violations.ts';
import { confirmWrite, takeWrite } from '../core/writes.ts';
import type { Schedule } from '../runtime/call-clock.ts';
import type { BoundStore } from './bound-store.ts';
import type { Observation } from './observe/observation.ts';
import type { GroupStore } from './store.ts';

interface RowWriterParts {
  readonly state: GroupState;
  readonly store: GroupStore;
  readonly bounds: BoundStore;
  readonly observation: Observation;
  readonly now: () => InstantMs;
  readonly after: Schedule;
  /** Resolves once everything that was written before it is on disk. */
  readonly sync: () => Promise<void>;
  /** Told when a write has arrived. */
  readonly onConfirmed: () => void;
  /** Told when the bound was written. */
  readonly onWritten: () => void;
  /** Ends the instance. */
  readonly abort: (reason: string) => void;
}

/** Writes what turns have noted, all in one transaction, and hears when it has arrived. */
export class RowWriter {
  readonly #parts: RowWriterParts;

  constructor(parts: RowWriterParts) {
    this.#parts = parts;
  }

  write(isBound: boolean): void {
    const { observation, now } = this.#parts;
    this.#tryTo(() => {
      if (isBound) this.#writeBound();
      observation.write(now());
    });
  }

  /** Writes what waits for a later write. */
  flush(): void {
    const { observation, now } = this.#parts;
    this.#tryTo(() => observation.flush(now()));
  }

  /** Makes the tables, and writes what there is so far. */
  open(): void {
    const { state, store } = this.#parts;
    this.#tryTo(() => {
      store.open();
      state.bound.isStored = true;
      this.#writeBound();
    });
  }

  /** Ends an instance whose writes do not arrive. One that was held up itself hears of it only after this turn. */
  giveUpUnlessConfirmed(): void {
    const { state, now, after, abort } = this.#parts;
    after(0, () => {
      if (now() >= lostAt(state.bound)) abort('what was written has not arrived');
    });
  }

  #writeBound(): void {
    const { state, store, bounds, observation, now, sync, onConfirmed, onWritten } = this.#parts;
    // Without tables nothing was granted that a row would have to cover, until something is held.
    if (!state.bound.isStored || (!store.isOpen && slotsHeld(state) === 0)) return;
    store.open();
    const at = now();
    const write = takeWrite(state, at);
    bounds.write(write, write.bound.mark === 0 ? observation.takeAtRest(at) : null);
    const confirmed = (): void => {
      confirmWrite(state, write.bound.seq);
      onConfirmed();
    };
    onWritten();
    // A write that fails ends the instance by itself.
    sync().then(confirmed, () => {});
  }

  /** Ends an instance that cannot write: it is not the current one, or is lost, and nothing of it may stay. */
  #tryTo(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.#parts.abort(`what was decided cannot be written: ${String(error)}`);
    }
  }
}
