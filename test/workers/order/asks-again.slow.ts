// Calls that go on after a pool was told that their ticket is cancelled: elsewhere, by a newer configuration, or once more
// in order. That pool grants them slots in their turn, and none goes out without. The upstream counts.
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { bodyBudget } from '../../../src/call/request/body.ts';
import type { AcquireRequest } from '../../../src/contract/rpc/group-rpc.ts';
import { GroupObject } from '../../../src/group/group-object.ts';
import { BODY_LIMITS } from '../../../src/upstream/body/body-budget.ts';
import * as spill from '../spill/scene.ts';
import { ask, KEY, pathTo, type SpillScene } from '../spill/scene.ts';
import { NO_COOLDOWN, nothingLeaks, pool, untilStatus } from '../support/pool.ts';
import { change, until } from '../support/worker.ts';

const LARGE = JSON.stringify({
  messages: [{ role: 'user', content: 'x'.repeat(200_000) }],
  model: 'm',
});

let scenes = 0;

afterEach(() => {
  vi.restoreAllMocks();
});

afterAll(nothingLeaks);

type AsksAnewGroup = NonNullable<NonNullable<Parameters<typeof spill.newScene>[0]['groups']>['a']>;

/** The upstream is another process, and notices a connection that was closed a moment after the slot is handed on. */
const NOTICED = { ...NO_COOLDOWN, cancel_cooldown_ms: 50 };

/** Two upstreams at one address, a group for a model of each, and `c` for all that either is called for. */
function newScene(
  afterMs: number,
  fields: { b?: AsksAnewGroup; c?: AsksAnewGroup } = {},
): Promise<SpillScene> {
  scenes += 1;
  const [a, b] = [`a-${scenes}`, `b-${scenes}`];
  const limits = { max_concurrency: 12 };
  return spill.newScene({
    spill: { spill_to: ['b'], after_ms: afterMs },
    sharing: { b: 'a' },
    settings: { chunks: 3, chunkDelayMs: 50 },
    groups: {
      a: { match: { upstreams: [a], models: ['m'] }, limits },
      b: { match: { upstreams: [b], models: ['m'] }, limits, ...fields.b },
      c: { match: { upstreams: [a, b] }, holds: NOTICED, ...fields.c },
    },
  });
}

/** Stands before the groups' objects: what it throws is what an acquire call comes to. */
function before(meet: (request: AcquireRequest) => Promise<void> | void): void {
  // oxlint-disable-next-line typescript/unbound-method -- called with its object below
  const { acquire } = GroupObject.prototype;
  vi.spyOn(GroupObject.prototype, 'acquire').mockImplementation(async function met(
    this: GroupObject,
    request: AcquireRequest,
  ) {
    await meet(request);
    return acquire.call(this, request);
  });
}

/** Watches the objects being told of tickets that are cancelled; `then` is called each time. */
function cancellations(then = (): void => {}) {
  // oxlint-disable-next-line typescript/unbound-method -- called with its object below
  const { cancel } = GroupObject.prototype;
  return vi.spyOn(GroupObject.prototype, 'cancel').mockImplementation(function told(
    this: GroupObject,
    ticketId: string,
  ) {
    then();
    return cancel.call(this, ticketId);
  });
}

function lost(): never {
  throw new Error('Network connection lost.');
}

function overloaded(): never {
  const message = 'Durable Object is overloaded. Too many requests queued.';
  throw Object.assign(new Error(message), { overloaded: true });
}

/** The groups that an answer says its call was in, and the number of slots that it had. */
function heldOf({ status, headers }: Response): [number, string | null, number] {
  const leases = headers.get('headgate-lease')?.split(', ') ?? [];
  return [status, headers.get('headgate-groups'), leases.length];
}

it.each([['reject'], [{ pass_with_limit_each: 2 }]] as const)(
  'a call that goes elsewhere for want of room waits for the group that is there too (%j)',
  async (on_unavailable) => {
    const at = await newScene(60_000, { c: { on_unavailable } });
    const holder = await spill.hold(at, 'a');
    const callersAtOnce = bodyBudget.count(BODY_LIMITS.restingBytes, 'rests');
    // At its next upstream there is room.
    const reported = cancellations(() => callersAtOnce.release());
    const answering = spill.post(pathTo(at, 'a'), LARGE, KEY);
    await until(() => expect(reported).toHaveBeenCalled());
    // It waits again, or has gone out.
    const goneOn = until(async () => {
      const { queued } = await pool(at.name('c')).status();
      expect(queued + (await at.a.stats()).total).toBe(2);
    });
    await Promise.race([goneOn, answering]);
    expect(await at.a.stats()).toMatchObject({ total: 1, inFlight: 1 });
    holder.leave();
    const answer = await answering;
    await answer.arrayBuffer();
    expect(heldOf(answer)).toEqual([200, `${at.name('b')}, ${at.name('c')}`, 2]);
    expect(await at.a.stats()).toMatchObject({ total: 2, peak: 1 });
  },
);

it('a call that goes elsewhere for overload keeps its place in the group that is there too', async () => {
  const at = await newScene(0);
  const wide = at.name('c');
  const holder = await spill.hold(at, 'a');
  let asks = 0;
  let isOver = false;
  before(
    ({
      group,
      ticket: {
        holder: { upstream },
      },
    }) => {
      if (group !== wide || upstream !== at.name('a')) return;
      asks += 1;
      if (isOver) overloaded();
      lost();
    },
  );
  const older = ask(at, 'older');
  await until(() => expect(asks).toBeGreaterThan(0));
  const younger = ask(at, 'younger', {}, 'b');
  await untilStatus(wide, { queued: 1 });
  isOver = true;
  await Promise.race([untilStatus(wide, { queued: 2 }), older.response]);
  holder.leave();
  expect((await older.response).status).toBe(200);
  expect([await older.end, await younger.end]).toEqual(['done', 'done']);
  const { arrivals, peak } = await at.a.stats();
  expect(arrivals.map(({ label }) => label)).toEqual(['holds a', 'older', 'younger']);
  expect(peak).toBe(1);
});

it('a call that met a reset and an overload when it tried all its groups at once gets its slots in order', async () => {
  const at = await newScene(0);
  let attempts = 0;
  before(({ group, ticket: { isTry } }) => {
    if (group !== at.name('c') || !isTry) return;
    attempts += 1;
    if (attempts === 1) lost();
    overloaded();
  });
  const one = ask(at, 'one', {}, 'b');
  expect(heldOf(await one.response)).toEqual([200, `${at.name('b')}, ${at.name('c')}`, 2]);
  expect(await one.end).toBe('done');
  expect(attempts).toBe(2);
});

it('a call that could have bypassed a group takes its slot there after its wait for another one', async () => {
  const at = await newScene(0, {
    b: { limits: { max_concurrency: 1 }, on_unavailable: { pass_with_limit_each: 2 } },
    c: { limits: { max_concurrency: 2 } },
  });
  const others = { model: 'other', stream: true, messages: [{ role: 'user', content: 'other' }] };
  const headers = { 'x-strict-silent-after-chunks': '1' };
  const holders = [1, 2].map(() => ask(at, 'other', { json: others, headers }, 'b'));
  await until(async () => expect((await at.a.stats()).inFlight).toBe(2));
  let isReachable = false;
  before(({ group }) => {
    if (group === at.name('b') && !isReachable) lost();
  });
  const calls = ['one', 'two'].map((label) => ask(at, label, {}, 'b'));
  await untilStatus(at.name('c'), { queued: 2 });
  isReachable = true;
  for (const one of holders) one.leave();
  for (const one of calls) {
    expect(heldOf(await one.response)).toEqual([200, `${at.name('b')}, ${at.name('c')}`, 2]);
    expect(await one.end).toBe('done');
  }
  const { arrivals } = await at.a.stats();
  const [first, second] = arrivals.filter(({ label }) => label !== 'other');
  expect(second?.at).toBeGreaterThanOrEqual(first?.endedAt ?? Infinity);
});

it('a call whose group was out of reach while the configuration changed gets its slot by the newer one', async () => {
  const at = await newScene(0);
  let asks = 0;
  let hasChanged = false;
  const reported = cancellations();
  before(async ({ group }) => {
    if (group !== at.name('b') || reported.mock.calls.length > 0) return;
    asks += 1;
    while (!hasChanged) await scheduler.wait(10);
    lost();
  });
  const one = ask(at, 'one', {}, 'b');
  await until(() => expect(asks).toBeGreaterThan(0));
  await change('PATCH', `/groups/${at.name('c')}`, { limits: { max_concurrency: 2 } });
  hasChanged = true;
  const answer = await one.response;
  expect(heldOf(answer)).toEqual([200, `${at.name('b')}, ${at.name('c')}`, 2]);
  // The first attempts of a ticket that no pool has heard of.
  expect(answer.headers.get('headgate-lease')).toMatch(/^[^.]+\.1, [^.]+\.1$/);
  expect(await one.end).toBe('done');
  expect((await at.a.stats()).total).toBe(1);
});
