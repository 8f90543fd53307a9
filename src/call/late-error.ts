import { logEvent } from '../runtime/log.ts';
import type { LeaseOutcome } from '../core/words/outcome.ts';
import { formOf, StreamEnd } from '../upstream/opening/opening-reader.ts';
import { packingsOf } from '../upstream/body/packing.ts';
import type { PipeMetering } from '../upstream/transfer/watched-pipe.ts';
import { sourceOf } from './answer-source.ts';
import { CallNamesReader } from './call-names.ts';
import type { Located } from './locate.ts';
import { readLateError } from './read-answer.ts';
import { placeOf, refusalFields } from './log-refusal.ts';
import type { Sending } from './sending.ts';

/** Gemini's route that streams an array. */
const LIST = ':streamGenerateContent';

/**
 * Keeps the end of a stream, to find an error there. null if the answer is not a stream. `isRead` if the whole answer
 * was read and holds no error, unless it is a stream. `isOpen` if no content came in time, so a whole error may follow.
 */
export function streamEndOf(
  answer: Response,
  { operation: { name }, path, isStream }: Located,
  isRead: boolean,
  isOpen = false,
): StreamEnd | null {
  const isLong = isStream || isOpen || path.endsWith(LIST);
  // Header look-ups call into the runtime, so they are made only when needed.
  if (isRead && !isLong) return null;
  const { ok, body, headers } = answer;
  if (!ok || body === null) return null;
  const form = formOf(headers.get('content-type'));
  if (form === null || (!isLong && (form === 'json' || form === 'text'))) return null;
  const packings = packingsOf(headers.get('content-encoding'));
  return packings === null ? null : new StreamEnd(form, name === 'responses', packings);
}

/** Copies the bytes of a pipe to the reader of the stream's end. */
export function withStreamEnd(
  end: StreamEnd | null,
  pipe: PipeMetering | null,
): PipeMetering | null {
  if (end === null) return pipe;
  const push = (chunk: Uint8Array): void => {
    pipe?.meter.push(chunk);
    end.push(chunk);
  };
  return { meter: { push }, filter: pipe?.filter ?? null };
}

/**
 * Counts an error at the end of a stream as a failure of the upstream. The caller has received it, so the call is not
 * retried. Returns the outcome of the call.
 */
export async function countLateError(
  sending: Sending,
  answer: Response,
  end: StreamEnd,
  outcome: LeaseOutcome,
): Promise<LeaseOutcome> {
  await end.caughtUp();
  const late = end.read();
  if (late === null || outcome !== 'success') return outcome;
  const { candidate, turn, admission } = sending;
  const refusal = readLateError(late, answer, sourceOf(sending));
  if (refusal === null) return outcome;
  await new CallNamesReader(candidate).read();
  logEvent('upstream_refused', refusalFields(sending, refusal, answer.status));
  const isRepeat = turn.tries.noteRefused(placeOf(candidate), refusal.signal);
  admission.report(refusal.signal, refusal.scope, isRepeat);
  return refusal.isFinal ? 'refused' : 'failed';
}
