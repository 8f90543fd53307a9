import { request } from 'node:http';
import { STOPPING_PATH, type Stopping } from '../../src/contract/rpc/forwarded.ts';

/** How long a Worker may take to do what the end of the process asks for. */
const WAIT_MS_MAX = 2_000;

/** Has a Worker service end the WebSockets on which nothing is under way, and others once that is over. */
export function endIdleSockets(port: number, cfHeader: string): Promise<void> {
  return report(port, cfHeader, { isStopping: true, mayFinish: true });
}

/**
 * Has a Worker service end its WebSockets, and all pools write what they keep in memory for a while. What is not written by then is
 * lost, as in a crash.
 */
export function writeAll(port: number, cfHeader: string): Promise<void> {
  return report(port, cfHeader, { isStopping: true });
}

function report(port: number, cfHeader: string, stopping: Stopping): Promise<void> {
  const headers = { [cfHeader]: JSON.stringify(stopping) };
  const signal = AbortSignal.timeout(WAIT_MS_MAX);
  return new Promise((resolve) => {
    request({ host: '127.0.0.1', port, path: STOPPING_PATH, headers, agent: false, signal })
      .on('response', (response) => response.resume().on('error', () => {}))
      .on('error', () => {})
      .on('close', () => resolve())
      .end();
  });
}
