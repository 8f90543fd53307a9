import type { UploadPace } from '../upstream/transfer/upload-pace.ts';
import type { CallBody } from './body.ts';
import { rejected, type Rejected } from './result.ts';
import type { AbortSource } from '../runtime/plain-abort.ts';

/** Tells whether the runtime sends a call of a method without a body only. */
export function mayGoBare(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/**
 * Looks whether a call goes out without a body, as the runtime sends none with a GET. Clients that say the length of every
 * body, or write each in chunks, do so for a GET as well. Rejected: it has bytes.
 */
export async function bareBody(
  method: string,
  body: CallBody,
  signal: AbortSource,
  pace: UploadPace | null = null,
): Promise<'bare' | 'with body' | Rejected> {
  if (!mayGoBare(method)) return 'with body';
  if (await isEmpty(body.open(pace), signal)) return 'bare';
  const message = `A ${method} cannot be passed on with a body.`;
  return rejected({ reason: 'body_unreadable', message });
}

async function isEmpty(body: BodyInit | null, signal: AbortSource): Promise<boolean> {
  if (body instanceof Uint8Array) return body.length === 0;
  if (!(body instanceof ReadableStream)) return body === null;
  const reader = body.getReader();
  const { promise: left, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(new Error('left')));
  if (signal.aborted) throw new Error('left');
  // On Workers a read may stay open for ever when the client has left: only the signal tells.
  const { done } = await Promise.race([reader.read(), left]);
  reader.cancel().catch(() => {});
  return done;
}
