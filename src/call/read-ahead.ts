import { UploadPace, type UploadPaceOptions } from '../upstream/transfer/upload-pace.ts';
import type { CallBody } from './body.ts';
import { READ_BYTES_MAX } from './metering.ts';
import type { Candidate } from './plan.ts';
import { LEFT, rejected, type CallerLeft, type Rejected } from './result.ts';
import { uploadTooSlow } from './unreachable.ts';
import { PlainAbort, type AbortSource } from '../runtime/plain-abort.ts';

/** Maximum size of a body that is always read before its call takes a slot. It arrives in a few packets. */
const SMALL_BYTES = 32 * 1024;

/**
 * Reads a body that is still coming before its call acquires a slot, which a slow caller would otherwise hold: a small body, and
 * every body in which tokens are counted. It must arrive as fast as with a slot. Null: the call continues, whether its body was
 * read or not.
 */
export async function readAhead(
  { call, rules }: Candidate,
  bytesMax = rules.isMetered ? READ_BYTES_MAX : SMALL_BYTES,
): Promise<Rejected | CallerLeft | null> {
  const { body, after, signal } = call;
  const { hold } = rules;
  const bytes = body.contentLength ?? Infinity;
  if (bytes > bytesMax) return null;
  const kept =
    bytes <= SMALL_BYTES
      ? // A small one is read natively, which costs least, and as a whole.
        await body.keep(bytes, signal, {
          limit: (stop) => after(hold.stalledMs ?? hold.maxHoldMs, stop),
        })
      : await keepPaced(body, bytes, { ...hold, after, signal });
  if (kept !== 'aborted') return null;
  if (body.fault !== null) return rejected(body.fault);
  return signal.aborted ? LEFT : uploadTooSlow(hold);
}

interface ReadAheadLimits extends Omit<UploadPaceOptions, 'onOver'> {
  readonly signal: AbortSource;
}

/** Keeps a larger body, whose length says little about how long it may take. */
function keepPaced(
  body: CallBody,
  bytes: number,
  { signal, ...limits }: ReadAheadLimits,
): ReturnType<CallBody['keep']> {
  const over = new PlainAbort(signal);
  const pace = new UploadPace({ ...limits, onOver: () => over.abort() });
  return body.keep(bytes, over, { pace });
}
