// A side that does not read holds the other one back, once the buffers on the way are full.
import { expect } from 'vitest';

/** More than the kernel keeps for the sockets on the way, whose buffers grow to 36 MiB each if the other side does not read. */
export const MORE_THAN_BUFFERS = 96 * 1_048_576;

/** Waits until a count that has begun no longer grows, however busy the machine is. */
export async function standstill(count: () => number): Promise<void> {
  let before = -1;
  const stands = (): boolean => {
    const last = before;
    before = count();
    return before > 0 && before === last;
  };
  await expect.poll(stands, { timeout: 20_000 }).toBe(true);
}
