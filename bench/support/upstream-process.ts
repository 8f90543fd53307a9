/**
 * The upstream of the benchmark, a process of its own. It speaks just enough HTTP for one runtime's
 * client, straight on the sockets, so that it takes a small part of what it is there to measure.
 */
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { LAST_CHUNK, wholeRequest } from './raw-http.ts';
import { CHUNK_EVERY_MS, jsonAnswer, streamChunk, STREAM_HEAD } from './wire.ts';

/** Chunks that each open stream is still to get. */
const streams = new Map<Socket, number>();

/** One tick for all streams: a timer for each would cost more than the chunks. */
setInterval(() => {
  for (const [socket, left] of streams) {
    if (left > 0) {
      socket.write(streamChunk);
      streams.set(socket, left - 1);
    } else {
      socket.write(LAST_CHUNK);
      streams.delete(socket);
    }
  }
}, CHUNK_EVERY_MS);

/** Sends a stream's chunks at times of its own. */
function streamAlone(socket: Socket, chunks: number, everyMs: number): void {
  let left = chunks;
  const stop = (): void => {
    clearInterval(timer);
    socket.off('close', stop);
  };
  const timer = setInterval(() => {
    socket.write(left > 0 ? streamChunk : LAST_CHUNK);
    if (left === 0) stop();
    left -= 1;
  }, everyMs);
  socket.once('close', stop);
}

function answer(socket: Socket, head: string): void {
  const [, chunks, everyMs] = /\?stream=(\d+)(?:&every=(\d+))? /.exec(head) ?? [];
  const afterMs = /\?after=(\d+) /.exec(head)?.[1];
  if (afterMs !== undefined) {
    setTimeout(() => socket.write(jsonAnswer), Number(afterMs));
  } else if (chunks === undefined) {
    socket.write(jsonAnswer);
  } else {
    socket.write(STREAM_HEAD);
    if (everyMs === undefined) streams.set(socket, Number(chunks));
    else streamAlone(socket, Number(chunks), Number(everyMs));
  }
}

const server = createServer({ noDelay: true }, (socket) => {
  let unread: Buffer = Buffer.alloc(0);
  socket.on('data', (data) => {
    unread = unread.length === 0 ? data : Buffer.concat([unread, data]);
    for (let request = wholeRequest(unread); request !== null; request = wholeRequest(unread)) {
      unread = unread.subarray(request.length);
      answer(socket, request.head);
    }
  });
  socket.on('error', () => socket.destroy());
  socket.on('close', () => streams.delete(socket));
});
server.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 }, () => {
  process.send?.((server.address() as AddressInfo).port);
});
process.on('disconnect', () => process.exit());
