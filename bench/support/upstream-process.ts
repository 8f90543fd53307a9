/**
 * The upstream of the benchmark, a process of its own. It speaks just enough HTTP for one runtime's
 * client, straight on the sockets, so that it takes a small part of what it is there to measure.
 */
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { CHUNK_EVERY_MS, jsonAnswer, streamChunk, STREAM_HEAD } from './wire.ts';

const HEAD_END = '\r\n\r\n';
const LAST_CHUNK = '0\r\n\r\n';

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

function answer(socket: Socket, head: string): void {
  const chunks = /\?stream=(\d+) /.exec(head)?.[1];
  const afterMs = /\?after=(\d+) /.exec(head)?.[1];
  if (afterMs !== undefined) {
    setTimeout(() => socket.write(jsonAnswer), Number(afterMs));
  } else if (chunks === undefined) {
    socket.write(jsonAnswer);
  } else {
    socket.write(STREAM_HEAD);
    streams.set(socket, Number(chunks));
  }
}

/** Length of the request that begins `bytes`, and its head; null: it is not all there. */
function whole(bytes: Buffer): { readonly length: number; readonly head: string } | null {
  const headLength = bytes.indexOf(HEAD_END) + HEAD_END.length;
  if (headLength < HEAD_END.length) return null;
  const head = bytes.toString('latin1', 0, headLength);
  const isChunked = /transfer-encoding: *chunked/i.test(head);
  if (isChunked) {
    const end = bytes.indexOf(LAST_CHUNK, headLength);
    return end < 0 ? null : { length: end + LAST_CHUNK.length, head };
  }
  const length = headLength + Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
  return bytes.length < length ? null : { length, head };
}

const server = createServer({ noDelay: true }, (socket) => {
  let unread: Buffer = Buffer.alloc(0);
  socket.on('data', (data) => {
    unread = unread.length === 0 ? data : Buffer.concat([unread, data]);
    for (let request = whole(unread); request !== null; request = whole(unread)) {
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
