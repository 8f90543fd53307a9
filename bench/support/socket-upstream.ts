/**
 * The upstream of `bench:frames`, a process of its own: sends messages back as they come or, for Responses, answers each of them
 * with the events of one answer.
 */
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import { ANSWER_EVENTS } from './frame-load.ts';

const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
server.on('connection', (socket, { url = '' }) => {
  const isResponses = url.endsWith('/responses');
  socket.on('message', (data, isBinary) => {
    if (isResponses) for (const event of ANSWER_EVENTS) socket.send(event);
    else socket.send(data, { binary: isBinary });
  });
  socket.on('error', () => socket.terminate());
});
server.on('listening', () => process.send?.((server.address() as AddressInfo).port));
process.on('disconnect', () => process.exit());
