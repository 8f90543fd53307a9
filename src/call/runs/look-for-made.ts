import { peekAnswer } from '../../upstream/transfer/fetch-answer.ts';
import type { AuthenticatedCall } from '../call.ts';
import type { NoteMade } from '../made/note-made.ts';
import { isJson, readBeginning, RUN_BYTES_MAX } from './hold-run.ts';

/**
 * Checks whether an answer names a stored object, and records it before the caller receives the answer. Returns the
 * same answer, unread.
 */
export async function lookForMade(
  { after }: AuthenticatedCall,
  answer: Response,
  note: NoteMade,
): Promise<Response> {
  if (!answer.ok || !isJson(answer)) return answer;
  const peeked = await peekAnswer(answer, RUN_BYTES_MAX, after);
  const { made } = readBeginning(peeked.text);
  if (made !== null) await note(made);
  return peeked.answer;
}
