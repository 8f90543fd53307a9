/**
 * An upstream with a limit of concurrency, a process of its own. It counts its calls in flight by its own clock, each
 * for as long after its last byte as its accounting lags, refuses those above the limit, and notes how long it stood
 * idle between two calls.
 */
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import type { LimitedUpstreamCounted, LimitedUpstreamReport } from './limited-upstream.ts';
import { LAST_CHUNK, wholeRequest } from './raw-http.ts';
import { jsonAnswer, STREAM_HEAD, streamChunk, tooManyAnswer } from './wire.ts';

let limit: number | null = null;
let lagMs = 0;
let callMs = 0;
let counted: { -readonly [key in keyof LimitedUpstreamCounted]: LimitedUpstreamCounted[key] } =
  newCounts();
let lastByteAt = NaN;
let inFlight = 0;
/** Calls in flight, and those that lag behind. */
let charged = 0;

function newCounts(): typeof counted {
  return { calls: 0, refused: 0, peak: 0, gapsMs: [] };
}

/** Ends a call. The time is taken before the write: the gap may be said too long by that, never too short. */
function end(socket: Socket, lastBytes: Uint8Array | string): void {
  lastByteAt = performance.now();
  socket.write(lastBytes);
  inFlight -= 1;
  if (lagMs === 0) charged -= 1;
  else setTimeout(() => (charged -= 1), lagMs);
}

function stream(socket: Socket, chunks: number, everyMs: number): void {
  let left = chunks;
  socket.write(STREAM_HEAD);
  const timer = setInterval(() => {
    left -= 1;
    if (left >= 0) {
      socket.write(streamChunk);
      return;
    }
    clearInterval(timer);
    end(socket, LAST_CHUNK);
  }, everyMs);
}

function answer(socket: Socket, head: string, arrivedAt: number): void {
  counted.calls += 1;
  if (limit !== null && charged >= limit) {
    counted.refused += 1;
    socket.write(tooManyAnswer);
    return;
  }
  if (inFlight === 0 && !Number.isNaN(lastByteAt)) counted.gapsMs.push(arrivedAt - lastByteAt);
  inFlight += 1;
  charged += 1;
  counted.peak = Math.max(counted.peak, inFlight);
  const chunks = Number(/[?&]stream=(\d+)/.exec(head)?.[1] ?? 0);
  const afterMs = Number(/[?&]after=(\d+)/.exec(head)?.[1] ?? callMs);
  if (chunks > 0) stream(socket, chunks, afterMs / chunks);
  else setTimeout(() => end(socket, jsonAnswer), afterMs);
}

const server = createServer({ noDelay: true }, (socket) => {
  let unread: Buffer = Buffer.alloc(0);
  socket.on('data', (data) => {
    const arrivedAt = performance.now();
    unread = unread.length === 0 ? data : Buffer.concat([unread, data]);
    for (let next = wholeRequest(unread); next !== null; next = wholeRequest(unread)) {
      unread = unread.subarray(next.length);
      answer(socket, next.head, arrivedAt);
    }
  });
  socket.on('error', () => socket.destroy());
});
server.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 }, () => {
  process.send?.((server.address() as AddressInfo).port);
});
process.on('message', (reported: LimitedUpstreamReport) => {
  const before = counted;
  counted = newCounts();
  lastByteAt = NaN;
  ({ limit, lagMs, callMs = 0 } = reported);
  process.send?.(before);
});
process.on('disconnect', () => process.exit());
