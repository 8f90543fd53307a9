import { pipeChunks } from '../watched-pipe.ts';
import type { ChunkPipe } from '../watched-pipe.ts';
import type { ByteFilter } from './usage-drop.ts';
import type { UsageMeter } from './usage-meter.ts';

/** What a metered body goes through. */
export interface Metering {
  readonly meter: UsageMeter;
  /** Takes something out of what goes on; the meter sees it. Null: everything goes on. */
  readonly filter: ByteFilter | null;
}

/** Pipes a body and shows every chunk of it to a meter. */
export function pipeMetered(
  body: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
  { signal, idle }: Pick<ChunkPipe, 'signal' | 'idle'>,
  { meter, filter }: Metering,
): Promise<void> {
  return pipeChunks(body, writable, {
    signal,
    idle,
    pass(chunk) {
      meter.push(chunk);
      return filter === null ? chunk : filter.push(chunk);
    },
    last: () => filter?.end() ?? new Uint8Array(),
  });
}
