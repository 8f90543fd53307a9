import { setTimeout as delay } from 'node:timers/promises';
import type { WorkerdProcess } from './workerd.ts';

/** Pause before a restart, doubled with each further restart that follows soon. */
const WAIT_MS_MIN = 250;
const WAIT_MS_MAX = 10_000;

/** After serving for this long, workerd counts as healthy and the pause starts from the minimum again. */
const HEALTHY_AFTER_MS = 60_000;

export interface KeepRunningOptions {
  /** Starts workerd again and resolves when it serves. Rejects immediately, and leaves no process, on the signal. */
  start(signal: AbortSignal): Promise<WorkerdProcess>;
  /** Called when workerd has ended. */
  onEnd(): void;
  onServing(workerd: WorkerdProcess): void;
  readonly onLog: (line: string) => void;
}

export interface KeptRunning {
  /** The process that serves, or the last one that did. */
  latest(): WorkerdProcess;
  /** Stops the restarts. Returns the process that serves, or null if there is none. */
  letGo(): Promise<WorkerdProcess | null>;
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/**
 * Restarts workerd whenever it ends unexpectedly. It never gives up, because the cause, such as a full disk, may be
 * temporary. Operators see the log lines and the failing `/healthz`.
 */
export function keepRunning(first: WorkerdProcess, options: KeepRunningOptions): KeptRunning {
  const over = new AbortController();
  const { signal } = over;
  let latest = first;
  let serves = true;
  let ends = 0;

  /** Returns null if the restarts were stopped meanwhile. */
  const startNext = async (why: string): Promise<WorkerdProcess | null> => {
    let reason = why;
    while (!signal.aborted) {
      const waitMs = Math.min(WAIT_MS_MAX, WAIT_MS_MIN * 2 ** ends);
      ends += 1;
      options.onLog(`${reason} Restarting in ${waitMs} ms.`);
      await delay(waitMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return null;
      try {
        return await options.start(signal);
      } catch (error) {
        reason = messageOf(error);
      }
    }
    return null;
  };

  const watch = async (): Promise<void> => {
    for (;;) {
      const servedFrom = performance.now();
      const sentence = await latest.ended;
      if (signal.aborted) return;
      serves = false;
      options.onEnd();
      if (performance.now() - servedFrom >= HEALTHY_AFTER_MS) ends = 0;
      const next = await startNext(sentence);
      if (next === null) return;
      latest = next;
      serves = true;
      options.onLog(`workerd is serving again as process ${next.pid}.`);
      options.onServing(next);
    }
  };

  const watching = watch();
  return {
    latest: () => latest,
    async letGo() {
      over.abort();
      if (!serves) await watching;
      return serves ? latest : null;
    },
  };
}
