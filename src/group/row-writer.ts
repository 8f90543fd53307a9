import type { GroupState } from '../core/state.ts';
import { lostAt } from '../core/parts/bound.ts';
import type { InstantMs } from '../core/words/ids.ts';
import { slotsHeld } from '../core/violations.ts';
import { confirmWrite, takeWrite } from '../core/writes.ts';
import type { Schedule } from '../runtime/clock.ts';
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
  /** Resolves once all earlier writes are on disk. */
  readonly sync: () => Promise<void>;
  /** Called when a write is confirmed. */
  readonly onConfirmed: () => void;
  /** Called when the bound was written. */
  readonly onWritten: () => void;
  readonly abort: (reason: string) => void;
}

/** Writes the pending rows of turns in one transaction, and confirms the bound once it is on disk. */
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

  /** Creates the tables, and writes the pending rows. */
  open(): void {
    const { state, store } = this.#parts;
    this.#tryTo(() => {
      store.open();
      state.bound.isStored = true;
      this.#writeBound();
    });
  }

  /**
   * Ends an instance whose writes are not confirmed. An instance that was itself suspended receives the confirmation
   * only after this turn.
   */
  giveUpUnlessConfirmed(): void {
    const { state, now, after, abort } = this.#parts;
    after(0, () => {
      if (now() >= lostAt(state.bound)) abort('a write was not confirmed in time');
    });
  }

  #writeBound(): void {
    const { state, store, bounds, observation, now, sync, onConfirmed, onWritten } = this.#parts;
    // Without tables no granted slot needs a row, until one is held.
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
    // The platform ends the instance if a write fails.
    sync().then(confirmed, () => {});
  }

  /** Ends an instance that cannot write. It was replaced or is lost, and none of its state may be used. */
  #tryTo(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.#parts.abort(`a write failed: ${String(error)}`);
    }
  }
}
