import { expect, expectTypeOf, test } from 'vitest';
import { createHeadgate, type Status } from '../../../packages/client/src/index.ts';
import type { CallerStatus } from '../../../src/contract/caller-api.ts';
import { KEY, failureOf, hanging, pass, stage, stopTheClock } from './support.ts';
import { problem } from './scripted-headgate.ts';

stopTheClock();

test('work runs under a lease, which is told of and given back', async () => {
  const { headgate, gate } = stage(1);
  const request = { group: 'glm', agent: 'run-7', agentStartedAt: new Date(5_000), slots: 2 };
  const result = await gate.withLease(request, (lease) => {
    expect(headgate.held.size).toBe(1);
    expect(lease).toMatchObject({
      ids: ['l-t1#1'],
      groups: ['glm'],
      member: 'second',
      waitedMs: 7,
    });
    lease.usage = { inputTokens: 10, outputTokens: 20 };
    return 'done';
  });
  expect(result).toBe('done');
  expect(headgate.held.size).toBe(0);
  expect(headgate.asked).toEqual(['POST /leases', 'DELETE /leases']);
  const [post, end] = headgate.seen;
  expect(post?.body).toEqual({ group: 'glm', agent: 'run-7', agent_started_at: 5_000, slots: 2 });
  expect(post?.headers).toMatchObject({
    authorization: `Bearer ${KEY}`,
    'idempotency-key': expect.stringMatching(/^[0-9a-f]{32}$/),
  });
  expect(end?.body).toEqual({
    outcome: 'success',
    usage: { input_tokens: 10, output_tokens: 20 },
  });
});

test('an upstream and a model place it as well, and all that is told goes along', async () => {
  const { headgate, gate } = stage(1);
  const place = { upstream: 'bedrock', model: 'claude' };
  const estimate = { inputTokens: 1, outputTokens: 2 };
  const wish = { lane: 'low', maxWaitMs: 9_000, parents: ['p#1'], estimate } as const;
  await gate.withLease({ ...place, ...wish }, () => null);
  expect(headgate.seen[0]?.body).toEqual({
    ...place,
    lane: 'low',
    max_wait_ms: 9_000,
    parents: ['p#1'],
    estimate: { input_tokens: 1, output_tokens: 2 },
  });
});

test.each([
  [
    'throws',
    (): never => {
      throw new Error('broken');
    },
  ],
  ['rejects', () => Promise.reject(new Error('broken'))],
])('work that %s gives back its lease, and its error is the caller’s', async (_, work) => {
  const { headgate, gate } = stage(1);
  await expect(gate.withLease({ group: 'glm' }, work)).rejects.toThrow('broken');
  expect(headgate.asked).toEqual(['POST /leases', 'DELETE /leases']);
  expect(headgate.seen[1]?.body).toEqual({ outcome: 'failed' });
});

test('whatever runs at once, no more than the limit do', async () => {
  const { headgate, gate } = stage(3);
  let running = 0;
  let peak = 0;
  const works = Array.from({ length: 50 }, async (_, at) =>
    gate.withLease({ group: 'glm' }, async () => {
      peak = Math.max(peak, (running += 1));
      await Promise.resolve();
      running -= 1;
      if (at % 5 === 0) throw new Error('some fail');
    }),
  );
  await Promise.allSettled(works);
  expect([peak, headgate.peak, headgate.held.size]).toEqual([3, 3, 0]);
});

test('a lease is renewed for as long as the work takes', async () => {
  const { headgate, gate } = stage(1);
  const { promise, resolve } = hanging();
  const work = gate.withLease({ group: 'glm' }, async ({ signal }) => {
    await promise;
    return signal.aborted;
  });
  await pass(600_000);
  const renewals = headgate.asked.filter((asked) => asked === 'PUT /leases').length;
  expect(renewals).toBeGreaterThanOrEqual(600 / 15);
  expect(renewals).toBeLessThanOrEqual(600 / 8);
  resolve();
  expect(await work).toBe(false);
  await pass(600_000);
  expect(headgate.asked.at(-1)).toBe('DELETE /leases');
});

test('a lease that was revoked stops the work, which hears why', async () => {
  const { headgate, gate } = stage(1);
  const work = gate.withLease({ group: 'glm' }, async ({ signal }) => {
    await new Promise((_, reject) =>
      signal.addEventListener('abort', () => reject(new Error('I was stopped'))),
    );
  });
  const ended = failureOf(work);
  await pass(1);
  headgate.revoke();
  await pass(15_000);
  expect(await ended).toMatchObject({
    name: 'HeadgateError',
    reason: 'lease_revoked',
    status: 410,
    cause: { message: 'I was stopped' },
  });
  expect(headgate.held.size).toBe(0);
});

test('a lease that nothing could renew is lost before another may have its slot', async () => {
  const { headgate, gate } = stage(1);
  const work = gate.withLease({ group: 'glm' }, async ({ signal }) => {
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  });
  const ended = failureOf(work);
  await pass(1);
  headgate.fault('PUT', ...Array.from({ length: 100 }, () => 'lost' as const));
  await pass(44_000);
  expect(headgate.held.size).toBe(1);
  await pass(1_000);
  expect(await ended).toMatchObject({ reason: 'lease_lost', status: null });
  expect(headgate.asked.filter((asked) => asked === 'PUT /leases').length).toBeGreaterThan(5);
});

test('renewals that fail in between lose nothing', async () => {
  const { headgate, gate } = stage(1);
  const { promise, resolve } = hanging();
  const work = gate.withLease({ group: 'glm' }, async ({ signal }) => {
    await promise;
    return signal.aborted;
  });
  await pass(1);
  headgate.fault('PUT', 'lost', 'answer lost', problem(503, 'limiter_unavailable', 1));
  await pass(120_000);
  resolve();
  expect(await work).toBe(false);
});

test('an answer that was lost costs no slot: the same key asks again', async () => {
  const { headgate, gate } = stage(1);
  headgate.fault('POST', 'answer lost', 'lost', problem(502, 'limiter_unavailable'));
  const work = gate.withLease({ group: 'glm' }, () => headgate.held.size);
  await pass(5_000);
  expect(await work).toBe(1);
  const keys = headgate.seen
    .filter(({ method }) => method === 'POST')
    .map(({ headers }) => headers['idempotency-key']);
  expect(keys).toHaveLength(4);
  expect(new Set(keys).size).toBe(1);
  expect(headgate.held.size).toBe(0);
});

test('a release that fails is made again, and its caller does not wait for that', async () => {
  const { headgate, gate } = stage(1);
  headgate.fault('DELETE', 'lost', problem(503, 'limiter_unavailable', 1), 'answer lost');
  expect(await gate.withLease({ group: 'glm' }, () => 'done')).toBe('done');
  expect(headgate.held.size).toBe(1);
  await pass(5_000);
  expect(headgate.held.size).toBe(0);
});

test('a release is retried for longer than the lease lasts, because a Headgate that was frozen still holds it', async () => {
  const { headgate } = stage(1);
  let isFrozen = false;
  const frozen: typeof headgate.fetch = (url, init) =>
    isFrozen ? Promise.reject(new TypeError('fetch failed')) : headgate.fetch(url, init);
  const gate = createHeadgate({ url: 'https://gate.example', key: KEY, fetch: frozen });
  const lease = await gate.acquire({ group: 'glm' });
  isFrozen = true;
  await lease.release();
  await pass(50_000);
  expect(headgate.held.size).toBe(1);
  isFrozen = false;
  await pass(7_000);
  expect(headgate.held.size).toBe(0);
  expect(headgate.asked).toEqual(['POST /leases', 'DELETE /leases']);
});

test('a release without any answer is abandoned', async () => {
  const { headgate } = stage(1);
  let releases = 0;
  const gone: typeof headgate.fetch = (url, init) => {
    if (init.method !== 'DELETE') return headgate.fetch(url, init);
    releases += 1;
    return Promise.reject(new TypeError('fetch failed'));
  };
  const gate = createHeadgate({ url: 'https://gate.example', key: KEY, fetch: gone });
  const lease = await gate.acquire({ group: 'glm' });
  await lease.release();
  await pass(3_600_000);
  const tried = releases;
  expect(tried).toBeLessThan(150);
  await pass(3_600_000);
  expect(releases).toBe(tried);
});

test('immediate answers that ask for a retry do not cause a loop', async () => {
  const { headgate, gate } = stage(1);
  const first = await gate.acquire({ group: 'glm' });
  const reported = { ticket: 't', position: 0, estimate_ms: null, retry_after_ms: 0 };
  const answers = Array.from({ length: 200 }, () => Response.json(reported, { status: 202 }));
  headgate.fault('POST', ...answers);
  const giveUp = new AbortController();
  const second = failureOf(gate.acquire({ group: 'glm', signal: giveUp.signal }));
  await pass(20_000);
  const asks = headgate.asked.filter((asked) => asked === 'POST /leases').length;
  expect(asks).toBeLessThan(17);
  expect(asks).toBeGreaterThan(8);
  giveUp.abort();
  await second;
  await first.release();
});

test('a lease that should be renewed at once is not renewed in a loop', async () => {
  const { headgate } = stage(1);
  let renewals = 0;
  const hasty: typeof headgate.fetch = async (url, init) => {
    const answer = await headgate.fetch(url, init);
    if (init.method === 'PUT') renewals += 1;
    if (init.method !== 'POST' && init.method !== 'PUT') return answer;
    const body = (await answer.json()) as object;
    return Response.json({ ...body, renew_within_ms: 0 }, { status: answer.status });
  };
  const gate = createHeadgate({ url: 'https://gate.example', key: KEY, fetch: hasty });
  const lease = await gate.acquire({ group: 'glm' });
  await pass(10_000);
  expect(renewals).toBeLessThanOrEqual(50);
  await lease.release();
});

test('a signal that aborts the wait leaves the queue', async () => {
  const { headgate, gate } = stage(1);
  const first = await gate.acquire({ group: 'glm' });
  const giveUp = new AbortController();
  const second = gate.withLease({ group: 'glm', signal: giveUp.signal }, () => 'never');
  await pass(1);
  headgate.slice();
  await pass(1_000);
  expect(headgate.waiting).toBe(1);
  giveUp.abort(new Error('no more wish'));
  await expect(second).rejects.toThrow('no more wish');
  await pass(1);
  expect(headgate.waiting).toBe(0);
  expect(headgate.asked.at(-1)).toBe('DELETE /tickets');
  await first.release();
  expect(headgate.held.size).toBe(0);
});

test('one that aborts before the first answer gives back what comes', async () => {
  const { headgate, gate } = stage(1);
  const first = await gate.acquire({ group: 'glm' });
  const giveUp = new AbortController();
  const others = [1, 2].map(() => gate.acquire({ group: 'glm', signal: giveUp.signal }));
  const ended = Promise.allSettled(others);
  await pass(1);
  giveUp.abort();
  expect((await ended).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await first.release();
  headgate.slice();
  await pass(1_000);
  expect([headgate.held.size, headgate.waiting]).toEqual([0, 0]);
});

test('a signal that aborts the work is the lease’s signal too', async () => {
  const { headgate, gate } = stage(1);
  const giveUp = new AbortController();
  const work = gate.withLease({ group: 'glm', signal: giveUp.signal }, async ({ signal }) => {
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  });
  await pass(1);
  giveUp.abort(new Error('no more wish'));
  await expect(work).rejects.toThrow('no more wish');
  expect(headgate.seen.at(-1)).toMatchObject({ method: 'DELETE', body: { outcome: 'cancelled' } });
});

test('a wait of many slices keeps its ticket', async () => {
  const { headgate, gate } = stage(1);
  const first = await gate.acquire({ group: 'glm' });
  const second = gate.withLease({ group: 'glm' }, () => 'at last');
  for (let slices = 0; slices < 5; slices += 1) {
    await pass(1_000);
    headgate.slice();
  }
  await first.release();
  await pass(1_000);
  expect(await second).toBe('at last');
  const tickets = headgate.seen
    .filter(({ method }) => method === 'POST')
    .map(({ body }) => body['ticket']);
  expect(tickets).toEqual([undefined, undefined, ...Array.from({ length: 5 }, () => 't2')]);
});

test('acquire and release by hand, once however often, and by await using', async () => {
  const { headgate, gate } = stage(1);
  const lease = await gate.acquire({ group: 'glm' });
  await Promise.all([lease.release(), lease.release('failed')]);
  await lease.release();
  {
    await using second = await gate.acquire({ group: 'glm' });
    expect(second.groups).toEqual(['glm']);
  }
  expect(headgate.asked).toEqual([
    'POST /leases',
    'DELETE /leases',
    'POST /leases',
    'DELETE /leases',
  ]);
});

test('tryAcquire has a lease or null, and other errors are errors', async () => {
  const { headgate, gate } = stage(1);
  const lease = await gate.tryAcquire({ group: 'glm' });
  expect(await gate.tryAcquire({ group: 'glm' })).toBeNull();
  await lease?.release();
  headgate.fault('POST', problem(403, 'key_forbidden'), problem(503, 'draining', 15));
  await expect(gate.tryAcquire({ group: 'glm' })).rejects.toMatchObject({
    reason: 'key_forbidden',
  });
  expect(await gate.tryAcquire({ group: 'glm' })).toBeNull();
});

test('an error of Headgate inside of the work is no word of a provider', async () => {
  const { headgate, gate } = stage(2);
  const work = gate.withLease({ group: 'glm' }, () => {
    headgate.fault('POST', problem(429, 'queue_full', 1));
    return gate.withLease({ group: 'other' }, () => null);
  });
  await expect(work).rejects.toMatchObject({ reason: 'queue_full', retryAfterMs: 1_000 });
  expect(headgate.asked).not.toContain('PATCH /leases');
});

test('the key stands in no error', async () => {
  const { headgate, gate } = stage(1);
  headgate.fault('POST', problem(401, 'key_invalid'), new Response('<html>', { status: 404 }));
  for (const reason of ['key_invalid', 'not_understood']) {
    const error: unknown = await gate.acquire({ group: 'glm' }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ reason });
    expect(
      String((error as Error).stack) + JSON.stringify(error) + String((error as Error).cause),
    ).not.toContain(KEY);
  }
});

test('status is Headgate’s own', async () => {
  const { gate } = stage(1);
  expect(await gate.status()).toEqual({ at: 'now', groups: [] });
  expectTypeOf<CallerStatus>().toExtend<Status>();
});

test('an answer that is lost after its caller has left is had again, and given back', async () => {
  const { headgate, gate } = stage(1);
  const first = await gate.acquire({ group: 'glm' });
  const giveUp = new AbortController();
  headgate.fault('POST', 'answer lost');
  const failed = failureOf(gate.acquire({ group: 'glm', signal: giveUp.signal }));
  await pass(1);
  giveUp.abort();
  await failed;
  await first.release();
  expect(headgate.held.size).toBe(1);
  await pass(1_000);
  expect([headgate.held.size, headgate.waiting]).toEqual([0, 0]);
});

test('a renewal gives the lease a new name, which is used from then on', async () => {
  const { headgate, gate } = stage(1);
  const lease = await gate.acquire({ group: 'glm' });
  await pass(30_000);
  await lease.release();
  const paths = headgate.seen.map(({ path }) => path);
  expect(new Set(paths).size).toBe(paths.length);
  expect(paths.slice(1).map((path) => path.split('~')[0])).toEqual(
    paths.slice(1).map(() => '/leases/l-t1'),
  );
});

test('a release waits for the renewal that is under way, and follows it', async () => {
  const { headgate } = stage(1);
  const renewal = hanging();
  const slow: typeof headgate.fetch = async (url, init) => {
    if (init.method === 'PUT') await renewal.promise;
    return headgate.fetch(url, init);
  };
  const gate = createHeadgate({ url: 'https://gate.example', key: KEY, fetch: slow });
  const lease = await gate.acquire({ group: 'glm' });
  await pass(13_000);
  const released = lease.release();
  await pass(100);
  expect(headgate.asked).toEqual(['POST /leases']);
  renewal.resolve();
  await released;
  expect(headgate.asked).toEqual(['POST /leases', 'PUT /leases', 'DELETE /leases']);
});

test('a release that is refused is not made again', async () => {
  const { headgate, gate } = stage(1);
  headgate.fault('DELETE', problem(404, 'lease_unknown'));
  await gate.withLease({ group: 'glm' }, () => null);
  await pass(60_000);
  expect(headgate.asked).toEqual(['POST /leases', 'DELETE /leases']);
});

test('a lease that has ended hears no more of its request’s signal', async () => {
  const { gate } = stage(1);
  const giveUp = new AbortController();
  const lease = await gate.acquire({ group: 'glm', signal: giveUp.signal });
  await lease.release();
  giveUp.abort();
  expect(lease.signal.aborted).toBe(false);
});

test('a wait that is told when to come again comes then, and within five seconds', async () => {
  const { headgate, gate } = stage(1);
  const first = await gate.acquire({ group: 'glm' });
  const second = gate.acquire({ group: 'glm' });
  await pass(1_000);
  headgate.retryAfterMs = 20_000;
  headgate.slice();
  await pass(19_999);
  expect(headgate.asked.filter((asked) => asked === 'POST /leases')).toHaveLength(2);
  await pass(4_000);
  expect(headgate.waiting).toBe(1);
  await first.release();
  expect((await second).ids).toEqual(['l-t2#1']);
});

test('answers that are lost now and then end no long wait', async () => {
  const { headgate, gate } = stage(1);
  const first = await gate.acquire({ group: 'glm' });
  const second = gate.acquire({ group: 'glm' });
  for (let slices = 0; slices < 5; slices += 1) {
    await pass(5_000);
    headgate.fault('POST', 'lost');
    headgate.slice();
  }
  await pass(5_000);
  await first.release();
  expect((await second).ids).toEqual(['l-t2#1']);
});

test('no redirect is followed, which might lead the key elsewhere', async () => {
  const { headgate, gate } = stage(1);
  await gate.withLease({ group: 'glm' }, () => null);
  expect(headgate.seen.map(({ redirect }) => redirect)).toEqual(['manual', 'manual']);
});

test('a usage that is no count costs no slot', async () => {
  const { headgate, gate } = stage(1);
  for (const odd of [NaN, -1, null, 'many', {}]) {
    await gate.withLease({ group: 'glm' }, (lease) => {
      lease.usage = { inputTokens: odd as number, outputTokens: 1.5, cachedTokens: 2n as never };
    });
    expect(headgate.held.size).toBe(0);
    const usage = { output_tokens: 2, cached_tokens: 2 };
    expect(headgate.seen.at(-1)?.body).toEqual({ outcome: 'success', usage });
  }
});

test('an error that cannot be looked at costs no slot', async () => {
  const { headgate, gate } = stage(1);
  const error = new Proxy(new Error('odd'), {
    get() {
      throw new Error('it is closed');
    },
  });
  const work = gate.withLease({ group: 'glm' }, () => Promise.reject(error));
  await expect(work).rejects.toThrow('it is closed');
  expect(headgate.held.size).toBe(0);
});
