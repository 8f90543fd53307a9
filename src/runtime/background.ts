import { onTimer, type Schedule } from './call-clock.ts';

/** Work that goes on after the response, as `ctx.waitUntil` keeps it alive. */
export interface Background {
  waitUntil(work: Promise<unknown>): void;
}

/** Waits. */
export function pause(ms: number, after: Schedule = onTimer): Promise<void> {
  return new Promise((resolve) => {
    after(ms, resolve);
  });
}
