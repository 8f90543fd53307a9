import { UploadPace, type UploadPaceOptions } from '../upstream/transfer/upload-pace.ts';
import type { CallBody } from './body.ts';
import { READ_BYTES_MAX } from './metering.ts';
import type { Candidate } from './plan.ts';
import { LEFT, rejected, type CallerLeft, type Rejected } from './result.ts';
import { uploadTooSlow } from './unreachable.ts';
import { PlainAbort, type AbortSource } from '../runtime/async.ts';

/** Maximum size of a body that is always read before its call takes a slot. It arrives in a few packets. */
const SMALL_BYTES = 32 * 1024;

/**
 * Reads a body that is still arriving before its call acquires a slot, which a slow caller would otherwise hold. It
 * reads small bodies, and every body whose tokens are counted. The body must arrive as fast as with a slot. Returns
 * null if the call continues, whether its body was read or not.
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
      ? // A small body is read natively as a whole, which costs least.
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

/** Keeps a larger body at the pace that its group requires. */
function keepPaced(
  body: CallBody,
  bytes: number,
  { signal, ...limits }: ReadAheadLimits,
): ReturnType<CallBody['keep']> {
  const over = new PlainAbort(signal);
  const pace = new UploadPace({ ...limits, onOver: () => over.abort() });
  return body.keep(bytes, over, { pace });
}
