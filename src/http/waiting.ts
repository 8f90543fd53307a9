/** Work that goes on after the response, as `ctx.waitUntil` keeps it alive. */
export interface Background {
  waitUntil(work: Promise<unknown>): void;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
