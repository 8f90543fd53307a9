import { expect, test } from 'vitest';
import { failureOf, pass, sdkError, stage, stopTheClock } from './support.ts';
import { problem } from './scripted-headgate.ts';

stopTheClock();

const AGAIN = { action: 'again', after_ms: 2_000, ticket: 'aged' };

test('a refusal that Headgate wants repeated is, after the wait and with the ticket', async () => {
  const { headgate, gate } = stage(1);
  headgate.verdicts.push(AGAIN);
  let attempts = 0;
  const work = gate.withLease({ group: 'glm', agent: 'run' }, () => {
    if ((attempts += 1) === 1) throw sdkError(429, { 'retry-after': '2', 'set-cookie': 'a=b' });
    return attempts;
  });
  await pass(1_999);
  expect(attempts).toBe(1);
  expect(headgate.held.size).toBe(0);
  await pass(1);
  expect(await work).toBe(2);
  expect(headgate.asked).toEqual([
    'POST /leases',
    'PATCH /leases',
    'POST /leases',
    'DELETE /leases',
  ]);
  expect(headgate.seen[1]?.body).toEqual({
    status: 429,
    headers: { 'retry-after': '2' },
    error: '{"message":"Rate limit reached","code":"rate_limit_exceeded"}',
  });
  expect(headgate.seen[2]?.body).toEqual({ group: 'glm', agent: 'run', ticket: 'aged' });
});

test('a Response that is returned is read as well, and its body is left to the caller', async () => {
  const { headgate, gate } = stage(1);
  headgate.verdicts.push(AGAIN, { action: 'stop', after_ms: 0 });
  let attempts = 0;
  const work = gate.withLease({ group: 'glm' }, () => {
    attempts += 1;
    return new Response(`no ${attempts}`, { status: 529, headers: { 'retry-after': '3' } });
  });
  await pass(2_000);
  const response = await work;
  expect([response.status, await response.text(), attempts]).toEqual([529, 'no 2', 2]);
  expect(headgate.seen[1]?.body).toMatchObject({
    status: 529,
    headers: { 'retry-after': '3' },
    error: 'no 1',
  });
  // Headgate has the slot back already.
  expect(headgate.asked.at(-1)).toBe('PATCH /leases');
});

test('`stop` and `go_on` give the error to the caller; only the second leaves a lease to release', async () => {
  const { headgate, gate } = stage(1);
  headgate.verdicts.push({ action: 'stop', after_ms: 0 }, { action: 'go_on', after_ms: 0 });
  for (const last of ['PATCH /leases', 'DELETE /leases']) {
    const error = sdkError(500);
    await expect(gate.withLease({ group: 'glm' }, () => Promise.reject(error))).rejects.toBe(error);
    expect(headgate.asked.at(-1)).toBe(last);
    expect(headgate.held.size).toBe(0);
  }
});

test('what the work has reported itself is not reported again', async () => {
  const { headgate, gate } = stage(1);
  headgate.verdicts.push({ ...AGAIN, after_ms: 0 });
  let attempts = 0;
  const work = gate.withLease({ group: 'glm' }, async (lease) => {
    if ((attempts += 1) > 1) return 'done';
    const error = sdkError(429);
    expect(await lease.report(error)).toEqual({ action: 'again', afterMs: 0, ticket: 'aged' });
    throw error;
  });
  await pass(1);
  expect(await work).toBe('done');
  expect(headgate.asked.filter((asked) => asked === 'PATCH /leases')).toHaveLength(1);
});

test('a report that does not arrive hides no error of the provider', async () => {
  const { headgate, gate } = stage(1);
  headgate.fault('PATCH', 'lost');
  const error = sdkError(429);
  await expect(gate.withLease({ group: 'glm' }, () => Promise.reject(error))).rejects.toBe(error);
  expect(headgate.held.size).toBe(0);
});

test('a wait that would outlast the caller’s own ends with the provider’s error', async () => {
  const { headgate, gate } = stage(1);
  headgate.verdicts.push({ ...AGAIN, after_ms: 60_000 });
  const error = sdkError(429);
  const work = gate.withLease({ group: 'glm', maxWaitMs: 5_000 }, () => Promise.reject(error));
  await expect(work).rejects.toBe(error);
});

test('so does one that finds no slot', async () => {
  const { headgate, gate } = stage(1);
  headgate.verdicts.push({ ...AGAIN, after_ms: 0 });
  const error = sdkError(429);
  const work = gate.withLease({ group: 'glm' }, () => {
    headgate.fault('POST', problem(429, 'queue_timeout', 1));
    return Promise.reject(error);
  });
  const ended = failureOf(work);
  await pass(1);
  expect(await ended).toBe(error);
});

test('a signal ends the wait for another try', async () => {
  const { headgate, gate } = stage(1);
  headgate.verdicts.push(AGAIN);
  const giveUp = new AbortController();
  const work = gate.withLease({ group: 'glm', signal: giveUp.signal }, () =>
    Promise.reject(sdkError(429)),
  );
  const ended = failureOf(work);
  await pass(1_000);
  giveUp.abort(new Error('no more wish'));
  expect(await ended).toHaveProperty('message', expect.stringContaining('no more wish'));
});

test('what breaks off because its caller has left is no word of the provider', async () => {
  const { headgate, gate } = stage(1);
  const giveUp = new AbortController();
  const work = gate.withLease({ group: 'glm', signal: giveUp.signal }, () => {
    giveUp.abort();
    throw sdkError(499);
  });
  await expect(work).rejects.toThrow('499');
  expect(headgate.asked).not.toContain('PATCH /leases');
});

test('a connection that broke is told in its words', async () => {
  const { headgate, gate } = stage(1);
  const lease = await gate.acquire({ group: 'glm' });
  await lease.report(new TypeError('fetch failed'));
  expect(headgate.seen.at(-1)?.body).toEqual({ error: 'fetch failed' });
  await lease.release('failed');
  await lease.report(new TypeError('too late'));
  expect(headgate.asked.at(-1)).toBe('DELETE /leases');
});

test('by hand: the verdict has the ticket for the next wait', async () => {
  const { headgate, gate } = stage(1);
  headgate.verdicts.push(AGAIN);
  const lease = await gate.acquire({ group: 'glm' });
  const { ticket } = await lease.report(new Response(null, { status: 429 }));
  expect(headgate.held.size).toBe(0);
  const next = await gate.acquire({ group: 'glm', ticket: ticket ?? '' });
  expect(next.ids).toEqual(['l-aged#1']);
  await lease.release();
  expect(headgate.held.size).toBe(1);
  await next.release();
});
