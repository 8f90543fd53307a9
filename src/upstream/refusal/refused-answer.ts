import { onTimer, type Schedule } from '../../runtime/clock.ts';
import { packingsOf, unpacked } from '../body/packing.ts';
import { REFUSAL_BYTES_MAX } from './error-fields.ts';

/** Maximum time to read the beginning of a refusal. After that, only the part that has arrived is used. */
const READ_WAIT_MS = 2_000;

/** The beginning of a response's body, and the same response with its body still unread. */
export interface PeekedAnswer {
  /** Decompressed. Empty if that fails. */
  readonly text: string;
  readonly answer: Response;
}

/** Reads the beginning of a response, which can still be passed on afterwards. */
export async function peekAnswer(
  answer: Response,
  bytesMax = REFUSAL_BYTES_MAX,
  after: Schedule = onTimer,
): Promise<PeekedAnswer> {
  const { body, status, statusText, headers } = answer;
  if (body === null) return { text: '', answer };
  const [peeked, rest] = body.tee();
  const text = await beginningOf(peeked, headers.get('content-encoding'), bytesMax, after);
  const same = new Response(rest, { status, statusText, headers, encodeBody: 'manual' });
  return { text, answer: same };
}

async function beginningOf(
  body: ReadableStream<Uint8Array>,
  contentEncoding: string | null,
  bytesMax: number,
  after: Schedule,
): Promise<string> {
  const packings = packingsOf(contentEncoding);
  if (packings === null) {
    body.cancel().catch(() => {});
    return '';
  }
  const reader = unpacked(body, packings).getReader();
  const decoder = new TextDecoder();
  const { promise: late, resolve } = Promise.withResolvers<null>();
  const callOff = after(READ_WAIT_MS, () => resolve(null));
  let text = '';
  let left = bytesMax;
  try {
    while (left > 0) {
      const read = await Promise.race([reader.read(), late]);
      if (read === null || read.done) break;
      text += decoder.decode(read.value.subarray(0, left), { stream: true });
      left -= read.value.length;
    }
  } catch {
    // The body broke off or is not compressed as declared. The part that was read is used.
  } finally {
    callOff();
    reader.cancel().catch(() => {});
  }
  return text;
}
