import { mediaType } from '../../runtime/header-value.ts';
import { logEvent } from '../../runtime/log.ts';
import { PackedRun, type RunReader } from '../../upstream/operation/runs.ts';
import { packingsOf } from '../../upstream/body/packing.ts';
import { pipeChunks } from '../../upstream/transfer/watched-pipe.ts';
import type { AuthenticatedCall } from '../call.ts';
import type { Located } from '../locate.ts';

/** Types of streams in which each event is a line of JSON. */
const IN_LINES: ReadonlySet<string> = new Set([
  'text/event-stream',
  'application/x-ndjson',
  'application/jsonl',
]);

export function isRunStream({ ok, body, headers }: Response): boolean {
  return ok && body !== null && IN_LINES.has(mediaType(headers.get('content-type')));
}

/**
 * Makes `reader` read an answer that may be compressed, although an uncompressed one was requested. null if the
 * compression cannot be undone here. A run in such an answer holds no slot, which is logged.
 */
export function readerOf<R extends RunReader>(
  { headers }: Response,
  reader: R,
  { upstream: { id } }: Pick<Located, 'upstream'>,
): RunReader | null {
  const encoding = headers.get('content-encoding');
  const packings = packingsOf(encoding);
  if (packings !== null) return packings.length === 0 ? reader : new PackedRun(reader, packings);
  logEvent('run_unreadable', { upstream: id, encoding: encoding?.slice(0, 40) ?? null });
  return null;
}

/** Passes the events of an answer to a reader in transit. */
export function readThrough(
  { body, status, statusText, headers }: Response,
  events: Pick<RunReader, 'push'>,
  ctx: AuthenticatedCall['ctx'],
): Response {
  const { readable, writable } = new IdentityTransformStream();
  const passing = pipeChunks(body ?? new ReadableStream(), writable, {
    // A caller that leaves aborts what is read.
    signal: new AbortController().signal,
    idle: null,
    stalled: null,
    pass(chunk) {
      events.push(chunk);
      return chunk;
    },
    last: () => new Uint8Array(),
  });
  ctx.waitUntil(passing.catch(() => {}));
  return new Response(readable, { status, statusText, headers, encodeBody: 'manual' });
}
