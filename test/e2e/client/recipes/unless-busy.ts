import type { Headgate } from 'headgate/client';

export async function improveUnlessBusy<T>(gate: Headgate, improve: () => Promise<T>) {
  await using lease = await gate.tryAcquire({ group: 'glm', lane: 'low' });
  return lease === null ? null : await improve();
}
