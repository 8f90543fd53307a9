// What the types of the package say of results, seen by somebody's compiler.
import { createHeadgate, type Lease, type Limit } from 'headgate/client';

const gate = createHeadgate({ url: 'https://gate.example', key: 'hg_key' });
const request = { group: 'glm', signal: undefined };

export const number: Promise<number> = gate.withLease(request, async () => 1);
export const response: Promise<Response> = gate.withLease(request, () => fetch('https://x'));
export const read: Promise<AsyncIterableIterator<string>> = gate.withLease(
  { upstream: 'bedrock', model: 'm' },
  async function* (lease: Lease) {
    yield lease.signal.aborted ? 'stopped' : 'on';
  },
);
export const limit: Limit = gate.limit('glm');
export const sum: Promise<number> = limit((a: number, b: number) => a + b, 1, 2);

// @ts-expect-error: a place is missing.
export const nowhere = gate.acquire({ lane: 'high' });
