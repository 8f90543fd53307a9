import { PackedCopy } from '../body/packed-copy.ts';
import type { Packing } from '../body/packing.ts';
import type { RunReader } from './run-events.ts';
import type { ReportedRun } from './runs.ts';

export class PackedRun implements RunReader {
  readonly #inner: RunReader;
  readonly #copy: PackedCopy;

  constructor(inner: RunReader, packings: readonly Packing[]) {
    this.#inner = inner;
    this.#copy = new PackedCopy(packings, (bytes) => inner.push(bytes));
  }

  push(chunk: Uint8Array): void {
    this.#copy.push(chunk);
  }

  get said(): ReportedRun | null {
    return this.#inner.said;
  }

  get made(): readonly string[] | null {
    return this.#inner.made;
  }

  caughtUp(): Promise<void> {
    return this.#copy.caughtUp();
  }
}
