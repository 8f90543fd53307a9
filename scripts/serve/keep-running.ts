import { setTimeout as delay } from 'node:timers/promises';
import type { WorkerdProcess } from './workerd.ts';

/** How long before the first new start, doubled with each that follows soon, up to the most. */
const WAIT_MS_MIN = 250;
const WAIT_MS_MAX = 10_000;

/** How long a workerd serves until it was well: the next end counts as the first. */
const WELL_AFTER_MS = 60_000;

/** Actions for a workerd that ends unasked. */
export interface KeepRunningOptions {
  /** Starts the next one; resolves when it serves. Fails at once, and leaves nothing, when the signal comes. */
  start(signal: AbortSignal): Promise<WorkerdProcess>;
  /** Hears that nobody serves from here on. */
  onEnd(): void;
  /** Hears that a new one serves. */
  onServing(workerd: WorkerdProcess): void;
  readonly onLog: (line: string) => void;
}

/** A workerd that is started again when it ends. */
export interface KeptRunning {
  /** The process that serves, or the last one that did. */
  latest(): WorkerdProcess;
  /** Starts no more. Answers with the process that serves; null: there is none. */
  letGo(): Promise<WorkerdProcess | null>;
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/**
 * Starts workerd again whenever it ends unasked, and never gives up: what was in its way, as a disk that is full,
 * may pass, and whoever wants another end sees the lines, and `/healthz` without an answer.
 */
export function keepRunning(first: WorkerdProcess, options: KeepRunningOptions): KeptRunning {
  const over = new AbortController();
  const { signal } = over;
  let latest = first;
  let serves = true;
  let ends = 0;

  /** Null: nobody wants it any more. */
  const startNext = async (why: string): Promise<WorkerdProcess | null> => {
    let reason = why;
    while (!signal.aborted) {
      const waitMs = Math.min(WAIT_MS_MAX, WAIT_MS_MIN * 2 ** ends);
      ends += 1;
      options.onLog(`${reason} It is started again in ${waitMs} ms.`);
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
      if (performance.now() - servedFrom >= WELL_AFTER_MS) ends = 0;
      const next = await startNext(sentence);
      if (next === null) return;
      latest = next;
      serves = true;
      options.onLog(`workerd serves again, as process ${next.pid}.`);
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
