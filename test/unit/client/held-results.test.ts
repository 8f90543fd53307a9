import { describe, expect, test } from 'vitest';
import { failureOf, hanging, pass, sdkError, stage, stopTheClock } from './support.ts';

stopTheClock();

async function* numbers(count: number): AsyncGenerator<number> {
  for (let n = 0; n < count; n += 1) yield n;
}

function streamOf(...pieces: string[]): ReadableStream<Uint8Array> {
  const bytes = pieces.map((piece) => new TextEncoder().encode(piece));
  return ReadableStream.from(bytes);
}

describe('an async iterable', () => {
  test('holds its lease to its end', async () => {
    const { headgate, gate } = stage(1);
    const read = await gate.withLease({ group: 'glm' }, () => numbers(3));
    const got: number[] = [];
    for await (const n of read) {
      got.push(n);
      expect(headgate.held.size).toBe(1);
    }
    expect(got).toEqual([0, 1, 2]);
    expect(headgate.held.size).toBe(0);
    expect(headgate.seen.at(-1)?.body).toEqual({ outcome: 'success' });
  });

  test('gives it back where its reader leaves', async () => {
    const { headgate, gate } = stage(1);
    let isClosed = false;
    const read = await gate.withLease({ group: 'glm' }, async function* () {
      try {
        yield* numbers(10);
      } finally {
        isClosed = true;
      }
    });
    for await (const n of read) if (n === 1) break;
    expect([headgate.held.size, isClosed]).toEqual([0, true]);
    expect(headgate.seen.at(-1)?.body).toEqual({ outcome: 'cancelled' });
  });

  test('stops the work where its reader leaves in the middle of a step', async () => {
    const { headgate, gate } = stage(1);
    const read = await gate.withLease({ group: 'glm' }, async function* ({ signal }) {
      yield 1;
      await new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('stopped')));
      });
    });
    await read.next();
    const step = failureOf(read.next());
    await read.return?.();
    expect(await step).toMatchObject({ name: 'AbortError' });
    expect(headgate.held.size).toBe(0);
  });

  test('gives it back where it breaks, and tells what the provider said', async () => {
    const { headgate, gate } = stage(1);
    const error = sdkError(529);
    const read = await gate.withLease({ group: 'glm' }, async function* () {
      yield 1;
      throw error;
    });
    await expect(Array.fromAsync(read)).rejects.toBe(error);
    expect(headgate.held.size).toBe(0);
    expect(headgate.asked).toEqual(['POST /leases', 'PATCH /leases', 'DELETE /leases']);
  });

  test('gives it back where its reader throws into it', async () => {
    const { headgate, gate } = stage(1);
    const read = await gate.withLease({ group: 'glm' }, () => numbers(10));
    await read.next();
    await expect(read.throw?.(new Error('enough'))).rejects.toThrow('enough');
    expect(headgate.held.size).toBe(0);
  });

  test('ends where the lease is lost, though its source hangs', async () => {
    const { headgate, gate } = stage(1);
    const read = await gate.withLease({ group: 'glm' }, async function* () {
      yield 1;
      await hanging().promise;
    });
    await read.next();
    const next = failureOf(read.next());
    headgate.revoke();
    await pass(15_000);
    expect(await next).toMatchObject({ reason: 'lease_revoked' });
    await expect(read.next()).rejects.toMatchObject({ reason: 'lease_revoked' });
  });

  test('one that cannot be begun, or was aborted before it was, holds nothing', async () => {
    const { headgate, gate } = stage(1);
    const begun = {
      [Symbol.asyncIterator]: (): AsyncIterator<number> => {
        throw new Error('it is consumed');
      },
    };
    await expect(gate.withLease({ group: 'glm' }, () => begun)).rejects.toThrow('consumed');
    expect(headgate.held.size).toBe(0);
    const leaving = new AbortController();
    await gate.withLease({ group: 'glm', signal: leaving.signal }, () => {
      leaving.abort();
      return numbers(3);
    });
    await pass(1);
    expect(headgate.held.size).toBe(0);
  });

  test('may give its steps at once, and throw them', async () => {
    const { headgate, gate } = stage(1);
    const made = (next: () => unknown) => ({
      [Symbol.asyncIterator]: () => ({ next }) as AsyncIterator<number>,
    });
    let value = 0;
    const read = await gate.withLease({ group: 'glm' }, () =>
      made(() => ({ done: value === 3, value: (value += 1) })),
    );
    expect(await Array.fromAsync(read)).toEqual([1, 2, 3]);
    expect(headgate.held.size).toBe(0);
    const broken = await gate.withLease({ group: 'glm' }, () =>
      made(() => {
        throw new Error('broken');
      }),
    );
    await expect(broken.next()).rejects.toThrow('broken');
    expect(headgate.held.size).toBe(0);
  });

  test('one that cannot be closed brings nobody down', async () => {
    const { headgate, gate } = stage(1);
    const closed = [
      () => ({ done: true, value: 0 }),
      () => {
        throw new Error('it does not close');
      },
    ];
    for (const close of closed) {
      const leaving = new AbortController();
      const next = () => hanging<IteratorResult<number>>().promise;
      const iterator = { next, return: close } as unknown as AsyncIterator<number>;
      const read = await gate.withLease({ group: 'glm', signal: leaving.signal }, () => ({
        [Symbol.asyncIterator]: () => iterator,
      }));
      const step = failureOf(read.next());
      leaving.abort();
      expect(await step).toMatchObject({ name: 'AbortError' });
      await pass(1);
      expect(headgate.held.size).toBe(0);
    }
  });
});

describe('a stream', () => {
  test('holds its lease to its end', async () => {
    const { headgate, gate } = stage(1);
    const stream = await gate.withLease({ group: 'glm' }, () => streamOf('a', 'b'));
    const reader = stream.getReader();
    await reader.read();
    expect(headgate.held.size).toBe(1);
    await reader.read();
    expect((await reader.read()).done).toBe(true);
    expect(headgate.held.size).toBe(0);
  });

  test('is not read ahead of its reader', async () => {
    const { gate } = stage(1);
    let pulled = 0;
    const source = new ReadableStream(
      { pull: (to) => to.enqueue((pulled += 1)) },
      { highWaterMark: 0 },
    );
    const stream = await gate.withLease({ group: 'glm' }, () => source);
    await pass(1);
    expect(pulled).toBe(0);
    await stream.getReader().read();
    await pass(1);
    expect(pulled).toBe(1);
  });

  test('gives it back where it is cancelled', async () => {
    const { headgate, gate } = stage(1);
    const source = Promise.withResolvers<unknown>();
    let isStopped = false;
    const stream = await gate.withLease({ group: 'glm' }, ({ signal }) => {
      signal.addEventListener('abort', () => (isStopped = true));
      return new ReadableStream({ cancel: source.resolve });
    });
    await stream.cancel('enough');
    expect(isStopped).toBe(true);
    expect(await source.promise).toBe('enough');
    expect(headgate.held.size).toBe(0);
  });

  test('gives it back where it breaks', async () => {
    const { headgate, gate } = stage(1);
    const broken = new ReadableStream({
      pull: (controller) => controller.error(new Error('broken')),
    });
    const stream = await gate.withLease({ group: 'glm' }, () => broken);
    await expect(stream.getReader().read()).rejects.toThrow('broken');
    expect(headgate.held.size).toBe(0);
  });

  test('ends where the lease is lost', async () => {
    const { headgate, gate } = stage(1);
    const stream = await gate.withLease({ group: 'glm' }, () => new ReadableStream());
    const read = failureOf(stream.getReader().read());
    headgate.revoke();
    await pass(15_000);
    expect(await read).toMatchObject({ reason: 'lease_revoked' });
  });

  test('one that is locked is somebody else’s to read', async () => {
    const { headgate, gate } = stage(1);
    const source = streamOf('a');
    source.getReader();
    expect(await gate.withLease({ group: 'glm' }, () => source)).toBe(source);
    expect(headgate.held.size).toBe(0);
  });
});

describe('a Response', () => {
  test('holds its lease until its body is read', async () => {
    const { headgate, gate } = stage(1);
    const init = { status: 201, statusText: 'Made', headers: { 'x-a': 'b' } };
    const made = new Response(streamOf('one ', 'two'), init);
    Object.defineProperty(made, 'url', { value: 'https://provider.example/' });
    const response = await gate.withLease({ group: 'glm' }, () => made);
    expect(response).toMatchObject({ status: 201, statusText: 'Made', ok: true });
    expect([response.url, response.headers.get('x-a')]).toEqual(['https://provider.example/', 'b']);
    expect(headgate.held.size).toBe(1);
    expect(await response.text()).toBe('one two');
    expect(headgate.held.size).toBe(0);
  });

  test.each([
    ['has none', () => new Response(null, { status: 204 })],
    [
      'was read',
      async () => {
        const response = new Response('read');
        await response.text();
        return response;
      },
    ],
  ])('without a body to read gives it back at once: one that %s', async (_, work) => {
    const { headgate, gate } = stage(1);
    await gate.withLease({ group: 'glm' }, work);
    expect(headgate.held.size).toBe(0);
  });
});
