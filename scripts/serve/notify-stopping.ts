import { request } from 'node:http';
import { STOPPING_PATH, type Stopping } from '../../src/contract/http.ts';

/** How long a Worker may take to prepare for the end of the process. */
const WAIT_MS_MAX = 2_000;

/** Ends the WebSockets of a Worker service: idle ones now, and others after their turn. */
export function endIdleSockets(port: number, cfHeader: string): Promise<void> {
  return report(port, cfHeader, { isStopping: true, mayFinish: true });
}

/**
 * Ends all WebSockets of a Worker service, and makes all pools write their buffered state. State that is not written in
 * time is lost, as in a crash.
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
