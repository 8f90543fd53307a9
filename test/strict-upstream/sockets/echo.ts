import { pause, silence } from '../writer.ts';
import type { SocketPeer } from './peer.ts';

/** Sends back each message as it came, one after the other. */
export function serveEcho(peer: SocketPeer): void {
  const { socket } = peer;
  let last: Promise<void> = Promise.resolve();
  let sent = 0;
  const resumed = socket.scope.waitForResume();
  const sendBack = async (data: string | Buffer): Promise<void> => {
    const behaviour = peer.behaviourNow();
    const { closeCode, closeReason, closeAfterChunks } = behaviour;
    const { gone } = socket;
    if (behaviour.silentAfterChunks === sent) await silence({ behaviour, gone, resumed });
    await socket.send(data, behaviour);
    sent += 1;
    if (closeCode !== null && closeAfterChunks === sent) socket.close(closeCode, closeReason);
    if (behaviour.breakAfterChunks === sent) socket.cut();
    await pause(behaviour.chunkDelayMs, gone);
  };
  socket.onMessage((data) => {
    last = last.then(() => sendBack(data)).catch(() => {});
  });
}
