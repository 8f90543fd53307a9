import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ServeOptions } from '../../scripts/serve/start-serve.ts';
import type { Subject } from './subjects.ts';

const PROGRAM = fileURLToPath(new URL('serve-process.ts', import.meta.url));

export type Running = Pick<Subject, 'pids' | 'port' | 'stop'>;

/** Runs `serve` in a process of its own, so that the forwarder's CPU can be told from the benchmark's. */
export async function serveApart(options: ServeOptions): Promise<Running> {
  const child = fork(PROGRAM);
  const exited = once(child, 'exit');
  child.send(options);
  const started = once(child, 'message') as Promise<[{ port: number; workerdPid: number }]>;
  const [reported] = await Promise.race([started, exited]);
  if (typeof reported !== 'object') throw new Error(`serve ended with ${reported}`);
  return {
    pids: [child.pid ?? 0, reported.workerdPid],
    port: reported.port,
    async stop() {
      child.disconnect();
      await exited;
    },
  };
}
