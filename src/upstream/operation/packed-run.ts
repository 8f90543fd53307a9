import { Unpacker } from '../body/unpacker.ts';
import type { Packing } from '../body/packing.ts';
import type { RunReader } from './run-events.ts';
import type { SaidOfRun } from './runs.ts';

/** Reads the state of a run from a packed answer. Its bytes pass as they came: only a copy is unpacked. */
export class PackedRun implements RunReader {
  readonly #inner: RunReader;
  readonly #unpacker: Unpacker;
  #unpacked: Promise<void> = Promise.resolve();

  constructor(inner: RunReader, packings: readonly Packing[]) {
    this.#inner = inner;
    this.#unpacker = new Unpacker(packings, (bytes) => this.#inner.push(bytes));
  }

  push(chunk: Uint8Array): void {
    // The chunk's buffer is used again for the next one.
    const copy = chunk.slice();
    this.#unpacked = this.#unpacked.then(() => this.#unpacker.push(copy)).catch(ignore);
  }

  get said(): SaidOfRun | null {
    return this.#inner.said;
  }

  caughtUp(): Promise<void> {
    return this.#unpacked;
  }
}

function ignore(): void {
  // It is not what its encoding says: what was read of it so far counts.
}
