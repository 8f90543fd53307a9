import { onTimer, type Schedule } from './call-clock.ts';

/** Rejects if `work` takes longer than `ms`. A call that is parked in a replaced instance may never return. */
export async function within<Value>(
  ms: number,
  work: Promise<Value>,
  after: Schedule = onTimer,
): Promise<Value> {
  const { promise: lost, reject } = Promise.withResolvers<never>();
  const cancel = after(ms, () => reject(new Error(`no answer within ${ms} ms`)));
  try {
    return await Promise.race([work, lost]);
  } finally {
    cancel();
  }
}
