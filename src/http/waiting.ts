/**
 * Fails when `work` takes longer than `ms`: a call that is parked in an instance which was replaced may
 * never come back.
 */
export async function within<Value>(ms: number, work: Promise<Value>): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | null = null;
  const lost = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, lost]);
  } finally {
    clearTimeout(timer);
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
