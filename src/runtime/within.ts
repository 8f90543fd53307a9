import { onTimer, type Schedule } from './call-clock.ts';

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
