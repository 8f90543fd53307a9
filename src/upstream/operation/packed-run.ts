import { whenQuiet } from '../../runtime/when-quiet.ts';
import type { RunReader } from './run-events.ts';
import type { SaidOfRun } from './runs.ts';

/** Reads the state of a run from a compressed answer. Its bytes pass as they came: only a copy is unpacked. */
export class PackedRun implements RunReader {
  readonly #inner: RunReader;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  #lastWrite: Promise<void> = Promise.resolve();

  constructor(inner: RunReader, format: 'gzip' | 'deflate') {
    const { readable, writable } = new DecompressionStream(format);
    this.#inner = inner;
    this.#writer = writable.getWriter();
    this.#readAll(readable.getReader()).catch(ignore);
  }

  push(chunk: Uint8Array): void {
    // The chunk's buffer is used again for the next one.
    this.#lastWrite = this.#writer.write(chunk.slice()).catch(ignore);
  }

  get said(): SaidOfRun | null {
    return this.#inner.said;
  }

  async caughtUp(): Promise<void> {
    await this.#lastWrite;
    await whenQuiet();
  }

  async #readAll(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.#inner.push(value);
    }
  }
}

function ignore(): void {
  // It is not what its encoding says: what was read of it so far counts.
}
