import type { GroupState } from '../core/state.ts';
import type { InstantMs } from '../core/words/ids.ts';
import type { Writes } from './batch.ts';
import type { ControlsRows } from './controls-rows.ts';
import { isInUse } from './idleness.ts';
import type { Observation } from './observe/observation.ts';
import type { GroupStore } from './store.ts';

interface RowWriterParts {
  readonly state: GroupState;
  readonly store: GroupStore;
  readonly controls: ControlsRows;
  readonly observation: Observation;
  readonly now: () => InstantMs;
  /** Ends the instance. */
  readonly abort: (reason: string) => void;
}

/** Writes what turns have noted, all in one transaction. */
export class RowWriter {
  readonly #parts: RowWriterParts;

  constructor(parts: RowWriterParts) {
    this.#parts = parts;
  }

  write(writes: Writes): void {
    const { state, store, controls, observation, now } = this.#parts;
    this.#tryTo(() => {
      store.write(writes);
      if (writes.controls !== null) controls.write(writes.controls, isInUse(state), now());
      observation.write(now());
    });
  }

  /** Makes the tables, and writes what there is so far. */
  open(): void {
    this.#tryTo(() => this.#parts.store.open());
  }

  /** Ends an instance that cannot write: it is not the current one, or is lost, and nothing of it may stay. */
  #tryTo(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.#parts.abort(`the lease rows cannot be written: ${String(error)}`);
    }
  }
}
