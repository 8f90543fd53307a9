import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROGRAM = new URL('upstream-process.ts', import.meta.url);

export interface BenchUpstream {
  /** Base URL, without a trailing slash. */
  readonly url: string;
  close(): Promise<void>;
}

/** Starts the upstream, or another program that tells its port, in a process of its own, on any free port of 127.0.0.1. */
export async function startUpstream(program = PROGRAM): Promise<BenchUpstream> {
  const child = fork(fileURLToPath(program));
  const [port] = (await once(child, 'message')) as [number];
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}
