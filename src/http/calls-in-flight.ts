/** Calls that this isolate is working on: the queued ones, and streams to their last byte. */
let count = 0;

export function callsInFlight(): number {
  return count;
}

/** Counts a call for as long as `work` takes. */
export async function counted<Value>(work: Promise<Value>): Promise<Value> {
  count += 1;
  try {
    return await work;
  } finally {
    count -= 1;
  }
}
