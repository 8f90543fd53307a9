import { onTimer, type Schedule } from './call-clock.ts';

/** Keeps work alive after the response, as `ctx.waitUntil` does. */
export interface Background {
  waitUntil(work: Promise<unknown>): void;
}

export function pause(ms: number, after: Schedule = onTimer): Promise<void> {
  return new Promise((resolve) => {
    after(ms, resolve);
  });
}
