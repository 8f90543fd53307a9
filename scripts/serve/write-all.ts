import { request } from 'node:http';
import { STOPPING_PATH, type Stopping } from '../../src/contract/rpc/forwarded.ts';

/** How long the pools may take to write what waits for a later write. */
const WRITE_MS_MAX = 2_000;

/**
 * Has a Worker service end its WebSockets, and all pools write what they keep in memory for a while. What is not written by then is
 * lost, as in a crash.
 */
export function writeAll(port: number, cfHeader: string): Promise<void> {
  const stopping: Stopping = { isStopping: true };
  const headers = { [cfHeader]: JSON.stringify(stopping) };
  const signal = AbortSignal.timeout(WRITE_MS_MAX);
  return new Promise((resolve) => {
    request({ host: '127.0.0.1', port, path: STOPPING_PATH, headers, agent: false, signal })
      .on('response', (response) => response.resume().on('error', () => {}))
      .on('error', () => {})
      .on('close', () => resolve())
      .end();
  });
}
