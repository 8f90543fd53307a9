import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('limited-process.ts', import.meta.url));

/** Terms by which the upstream is to count from here on. */
export interface LimitedUpstreamReport {
  /** Calls in flight that it takes; null: as many as come. */
  readonly limit: number | null;
  /** How long it counts a call after its last byte. */
  readonly lagMs: number;
  /** How long a call takes that does not say so. Absent: no time. */
  readonly callMs?: number;
}

/** Counts of the upstream since it was told anew. */
export interface LimitedUpstreamCounted {
  /** Calls that came, those that it refused included. */
  readonly calls: number;
  readonly refused: number;
  /** Most calls in flight at once, by their last bytes: not by the lag. */
  readonly peak: number;
  /** How long it stood idle, each time: from the last byte of a call to the whole next request. */
  readonly gapsMs: number[];
}

export interface LimitedUpstream {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Begins to count anew. Answers with the counts so far. */
  report(terms: LimitedUpstreamReport): Promise<LimitedUpstreamCounted>;
  stop(): Promise<void>;
}

/** Starts an upstream that has a limit, on any free port of 127.0.0.1. */
export async function startLimitedUpstream(terms: LimitedUpstreamReport): Promise<LimitedUpstream> {
  const child = fork(PROGRAM);
  const [port] = (await once(child, 'message')) as [number];
  const report = async (reported: LimitedUpstreamReport): Promise<LimitedUpstreamCounted> => {
    const answer = once(child, 'message') as Promise<[LimitedUpstreamCounted]>;
    child.send(reported);
    return (await answer)[0];
  };
  await report(terms);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    pid: child.pid ?? 0,
    report: report,
    async stop() {
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}
