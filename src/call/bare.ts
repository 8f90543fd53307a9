import type { UploadPace } from '../upstream/transfer/upload-pace.ts';
import type { CallBody } from './body.ts';
import { rejected, type Rejected } from './result.ts';
import type { AbortSource } from '../runtime/async.ts';

/** Returns whether the runtime sends requests of this method only without a body. */
export function mayGoBare(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/**
 * Checks whether a call can be sent without a body, because the runtime sends none with a GET. Some clients declare a
 * length or use chunks for every request, even for an empty body. Rejects a body with bytes.
 */
export async function bareBody(
  method: string,
  body: CallBody,
  signal: AbortSource,
  pace: UploadPace | null = null,
): Promise<'bare' | 'with body' | Rejected> {
  if (!mayGoBare(method)) return 'with body';
  if (await isEmpty(body.open(pace), signal)) return 'bare';
  const message = `A ${method} request with a body cannot be forwarded. Send it without a body.`;
  return rejected({ reason: 'body_unreadable', message });
}

async function isEmpty(body: BodyInit | null, signal: AbortSource): Promise<boolean> {
  if (body instanceof Uint8Array) return body.length === 0;
  if (!(body instanceof ReadableStream)) return body === null;
  const reader = body.getReader();
  const { promise: left, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(new Error('left')));
  if (signal.aborted) throw new Error('left');
  // On Workers a read may stay pending forever after the client has left. Only the signal reports that.
  const { done } = await Promise.race([reader.read(), left]);
  reader.cancel().catch(() => {});
  return done;
}
