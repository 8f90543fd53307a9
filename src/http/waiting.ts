import { onTimer, type Schedule } from '../upstream/call-clock.ts';

/**
 * Fails when `work` takes longer than `ms`: a call that is parked in an instance which was replaced may
 * never come back.
 */
export async function within<Value>(
  ms: number,
  work: Promise<Value>,
  after: Schedule = onTimer,
): Promise<Value> {
  const { promise: lost, reject } = Promise.withResolvers<never>();
  const callOff = after(ms, () => reject(new Error(`no answer within ${ms} ms`)));
  try {
    return await Promise.race([work, lost]);
  } finally {
    callOff();
  }
}

/** Work that goes on after the response, as `ctx.waitUntil` keeps it alive. */
export interface Background {
  waitUntil(work: Promise<unknown>): void;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
