import { EXEMPT_BYTES_MAX, type BodyBudget } from './body-budget.ts';
import type { OutgoingBody } from './outgoing-body.ts';
import { renameModel } from './rename-model.ts';

/** A body that is held in memory, so that it can go out more than once. */
export interface KeptBody extends OutgoingBody {
  /** Null: the request has no body. */
  readonly bytes: Uint8Array | null;
}

/**
 * Reads a body whole and keeps it. Null, and the body is as it was: it is longer than `bytesMax`, its
 * length is not known, or the budget has no room for it, which is asked above `exemptBytes`. `aborted`: the caller left, or its watch found a
 * fault, and nothing is left of it.
 */
export async function keepBody(
  body: OutgoingBody | KeptBody,
  bytesMax: number,
  budget: BodyBudget,
  signal: AbortSignal,
  exemptBytes = EXEMPT_BYTES_MAX,
): Promise<KeptBody | null | 'aborted'> {
  if ('bytes' in body) return body;
  const { contentLength } = body;
  if (contentLength === null || contentLength > bytesMax) return null;
  const isExempt = contentLength <= exemptBytes;
  const reservation = isExempt ? null : budget.tryTake(contentLength);
  if (!isExempt && reservation === null) return null;
  const source = body.open();
  const bytes = await bytesOf(source, signal);
  if (bytes === 'aborted') {
    reservation?.release();
    return bytes;
  }
  return keptBody(bytes, () => reservation?.release());
}

/** A body of these bytes. `release` is called once, when nobody needs it any more. */
function keptBody(bytes: Uint8Array | null, release: () => void): KeptBody {
  let isHeld = true;
  return {
    bytes,
    contentLength: bytes?.length ?? 0,
    open: () => bytes,
    sent: Promise.resolve(),
    watch: null,
    discard() {
      if (isHeld) release();
      isHeld = false;
    },
    withoutModelPrefix: () => null,
  };
}

/**
 * A kept body under another model name. What is held meanwhile is the body that it is made from, each time
 * that it goes out: a call may wait for long at each upstream. Null: it names no model.
 */
export function renamedBody(body: KeptBody, model: string): KeptBody | null {
  const { bytes } = body;
  const renamed = (): Uint8Array | null => (bytes === null ? null : renameModel(bytes, model));
  const contentLength = renamed()?.length;
  if (contentLength === undefined) return null;
  return {
    get bytes() {
      return renamed();
    },
    contentLength,
    open: renamed,
    sent: Promise.resolve(),
    watch: null,
    discard: () => body.discard(),
    withoutModelPrefix: () => null,
  };
}

async function bytesOf(
  source: BodyInit | null,
  signal: AbortSignal,
): Promise<Uint8Array | null | 'aborted'> {
  if (source === null || source instanceof Uint8Array) return source;
  const { promise: gone, resolve } = Promise.withResolvers<'aborted'>();
  const leave = (): void => resolve('aborted');
  signal.addEventListener('abort', leave);
  try {
    if (signal.aborted) return 'aborted';
    // On Workers a read may stay open for ever when the client has left: only the signal tells.
    const read = await Promise.race([new Response(source).arrayBuffer(), gone]);
    return read === 'aborted' ? read : new Uint8Array(read);
  } catch {
    return 'aborted';
  } finally {
    signal.removeEventListener('abort', leave);
  }
}
