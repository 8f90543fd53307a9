import { mediaType } from '../../runtime/header-value.ts';
import type { Schedule } from '../../runtime/clock.ts';
import { pipeMetered, type PipeMetering } from '../usage/metered-pipe.ts';
import { BoundWatch, type TimeBound } from './bound-watch.ts';
import type { HeldOpening } from './held-opening.ts';
import { pipeObserved } from './observed-pipe.ts';
import { AbortWatch, pipeWatched } from './watched-pipe.ts';

/** How long a body that broke off while it was held back stays open, so that its headers reach the caller. */
const FLUSH_MS = 50;

/** Types of bodies that consist of small events, each of which must be passed on immediately. */
const EVENTS: ReadonlySet<string> = new Set([
  'text/event-stream',
  'application/x-ndjson',
  'application/jsonl',
  'application/vnd.amazon.eventstream',
]);

export interface BodyStreams {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  /** A readable copy of what the caller has read. null if nothing observes the body. */
  readonly taken: ReadableStream<Uint8Array> | null;
}

export interface BodyPassage {
  readonly signal: AbortSignal;
  /** Maximum silence of the upstream. null means no limit. */
  readonly idle: TimeBound | null;
  /** Maximum time for which the caller may read nothing of what was sent. null means no limit. */
  readonly stalled: TimeBound | null;
  readonly after: Schedule;
  readonly metering: PipeMetering | null;
  /** The beginning of the body, if it has already been read. */
  readonly opening: HeldOpening | null;
  readonly hasBroken: boolean;
}

export function comesInEvents(contentType: string | null): boolean {
  return EVENTS.has(mediaType(contentType));
}

/**
 * Creates the streams through which a body reaches the caller.
 *
 * @param length length of the body in bytes. null if it is unknown or a filter removes something
 * @param isWatched whether silences are limited
 */
export function bodyStreams(
  length: string | null,
  contentType: string | null,
  isWatched: boolean,
  metering: PipeMetering | null,
): BodyStreams {
  const { readable, writable } =
    length === null ? new IdentityTransformStream() : new FixedLengthStream(BigInt(length));
  // If the body is only observed, it can be read after it was passed on.
  const looksInto = metering === null ? isWatched : metering.filter === null;
  if (length !== null || !looksInto || !comesInEvents(contentType)) {
    return { readable, writable, taken: null };
  }
  const [out, taken] = readable.tee();
  return { readable: out, writable, taken };
}

/** Passes a body on through the cheapest pipe that can observe what is needed. Rejects if either side breaks. */
export async function passBody(
  body: ReadableStream<Uint8Array>,
  { writable, taken }: BodyStreams,
  passing: BodyPassage,
): Promise<void> {
  const { signal, idle, stalled, after, metering, opening, hasBroken } = passing;
  const passed = opening === null ? 0 : await passOpening(opening, writable, passing);
  if (hasBroken) await new Promise<void>((done) => after(FLUSH_MS, done));
  if (taken !== null) {
    const { meter = null } = metering ?? {};
    const onSaid = (bytes: Uint8Array): void => meter?.push(bytes);
    await pipeObserved(body, writable, taken, { signal, idle, stalled, after, onSaid, passed });
  } else if (metering !== null) {
    await pipeMetered(body, writable, { signal, idle, stalled }, metering);
  } else if (idle === null && stalled === null) {
    await body.pipeTo(writable, { signal });
  } else {
    await pipeWatched(body, writable, { signal, idle, stalled });
  }
}

/** Passes on the bytes of a body that were already read. Returns their number. */
async function passOpening(
  opening: HeldOpening,
  writable: WritableStream<Uint8Array>,
  { signal, idle, stalled, metering }: BodyPassage,
): Promise<number> {
  const writer = writable.getWriter();
  const abort = new AbortWatch(signal);
  const reading = idle === null ? null : new BoundWatch(idle);
  const writing = stalled === null ? null : new BoundWatch(stalled);
  let passed = 0;
  const write = async (piece: Uint8Array): Promise<void> => {
    reading?.end();
    passed += piece.length;
    metering?.meter.push(piece);
    const out = metering?.filter?.push(piece) ?? piece;
    if (out.length > 0) {
      writing?.begin();
      await writer.write(out);
      writing?.end();
    }
    reading?.begin();
  };
  reading?.begin();
  try {
    await abort.or(opening.passOn(write));
  } catch (error) {
    await writer.abort(error).catch(() => {});
    throw error;
  } finally {
    reading?.stop();
    writing?.stop();
    abort.stop();
  }
  writer.releaseLock();
  return passed;
}
