// Slots that a pool lends to an isolate, as its object hands them out, wants them back, and loses them.
import { afterAll, beforeEach, expect, it } from 'vitest';
import type { PrefetchedShare } from '../../../src/core/parts/prefetches.ts';
import { leaseId as idOf } from '../../../src/core/words/ids.ts';
import type {
  GiveBackRequest,
  PrefetchReport,
  PrefetchRpc,
} from '../../../src/contract/rpc/group-rpc.ts';
import {
  define,
  heldBy,
  inside,
  nothingLeaks,
  passAwake,
  pool,
  queueUp,
  resetPool,
  take,
  untilStatus,
} from '../support/pool.ts';

const BORROWER = { isolate: 'isolate', configVersion: 2 };
const LIMIT = 20;

let name = '';
let names = 0;
let tickets = 0;

beforeEach(async () => {
  name = `lending-${(names += 1)}`;
  await define(name, LIMIT);
});

afterAll(nothingLeaks);

/** Makes calls that end at once, until the isolate is lent slots. */
async function borrow(fields = {}, most = 12): Promise<PrefetchedShare | null> {
  for (let calls = 0; calls < most; calls += 1) {
    const { lease, lent: prefetched } = await take(name, `b${(tickets += 1)}`, {
      ...BORROWER,
      ...fields,
    });
    await lease.release('success', 200);
    if (prefetched !== undefined) return prefetched;
  }
  return null;
}

async function lentOf(fields = {}): Promise<PrefetchedShare> {
  // On a busy machine it takes more of them to make eight in a second.
  const lent = await borrow(fields, 400);
  if (lent === null) throw new Error('nothing was lent');
  return lent;
}

function reportOn(
  { loan, slots }: PrefetchedShare,
  fields: Partial<PrefetchReport> = {},
): PrefetchReport {
  return { loan, known: slots.length, used: 0, peak: 0, ended: [], ...fields };
}

function backOf(lent: PrefetchedShare, slots = lent.slots): GiveBackRequest {
  const { attachment } = lent;
  const each = slots.map((slot) => ({ slot, attachment }));
  return { ...reportOn(lent), slots: each, hasLapsed: false };
}

async function keep(lent: PrefetchedShare): Promise<PrefetchRpc> {
  const kept = await pool(name).keepPrefetch(reportOn(lent));
  if (kept.kind !== 'kept') throw new Error(kept.kind);
  return kept.loan;
}

it('an isolate that calls often is lent a quarter of what is free, eight slots at the most', async () => {
  const lent = await lentOf();
  expect(lent.slots).toHaveLength(4);
  await untilStatus(name, { in_use: 0, lent: 4 });
  expect(await pool(name).leases()).toEqual([]);
  await pool(name).giveBack(backOf(lent));
  await untilStatus(name, { in_use: 0, lent: 0 });
  await define(name, 200, {}, 2);
  const more = await lentOf();
  expect(more.slots).toHaveLength(8);
  await pool(name).giveBack(backOf(more));
});

it('what is lent and what is held is half of the slots at the most', async () => {
  const [first, second] = [await lentOf(), await lentOf()];
  expect(second.loan).toBe(first.loan);
  const third = await borrow();
  const lent = [first, second, ...(third === null ? [] : [third])];
  const slots = lent.flatMap((each) => each.slots);
  expect(slots.length).toBeLessThanOrEqual(LIMIT / 2);
  expect(await borrow()).toBeNull();
  for (const each of lent) await pool(name).giveBack(backOf(each));
});

it.each([
  ['that may not borrow', { isolate: undefined }],
  ['of several slots', { slots: 2 }],
])('a call %s is lent none', async (_which, fields) => {
  await define(name, LIMIT, { limits: { max_concurrency: LIMIT, max_weight: 2 } } as never, 2);
  expect(await borrow(fields)).toBeNull();
});

it('an isolate that calls seldom is lent none', async () => {
  expect(await borrow({}, 5)).toBeNull();
});

it.each([
  ['rates', { limits: { max_concurrency: LIMIT, rpm: 1_000_000 } }],
  ['a bound for each tenant', { fairness: { max_concurrency_each: 19 } }],
  ['reserved slots', { fairness: { reserved: { somebody: 1 } } }],
  ['a cool-down', { holds: { release_cooldown_ms: 50 } }],
  ['a dry run', { dry_run: true }],
] as const)('a group with %s lends none', async (_what, fields) => {
  await define(name, LIMIT, fields as never, 2);
  expect(await borrow()).toBeNull();
  await untilStatus(name, { cooling: 0 });
});

it('lent slots are taken like others, and wanted back as soon as a call waits', async () => {
  const lent = await lentOf();
  const loan = await keep(lent);
  const renewing = loan.renew(reportOn(lent));
  const leases = [];
  for (let held = 0; held < LIMIT - lent.slots.length; held += 1) {
    leases.push(await take(name, `h${held}`));
  }
  const waiter = await queueUp(name, 'waits');
  expect(await renewing).toBe('revoking');
  await pool(name).giveBack(backOf(lent));
  const granted = await waiter.answer;
  expect(granted.kind).toBe('granted');
  await untilStatus(name, { in_use: LIMIT - lent.slots.length + 1, lent: 0, queued: 0 });
  loan[Symbol.dispose]();
  if (granted.kind === 'granted') leases.push(granted);
  for (const { lease } of leases) await lease.release('success', 200);
});

it.each([
  ['pauses it', { paused: true }],
  ['drains it', { draining: true }],
  ['gives it a rate', { limits: { max_concurrency: LIMIT, rpm: 60 } }],
  ['lowers its limit', { limits: { max_concurrency: 2 } }],
] as const)('they are wanted back as soon as an operator %s', async (_how, fields) => {
  const lent = await lentOf();
  const loan = await keep(lent);
  const renewing = loan.renew(reportOn(lent));
  await define(name, LIMIT, fields as never, 2);
  expect(await renewing).toBe('revoking');
  await pool(name).giveBack(backOf(lent));
  await untilStatus(name, { lent: 0 });
  loan[Symbol.dispose]();
});

it('they are wanted back as soon as the upstream refuses a call', async () => {
  const lent = await lentOf();
  const loan = await keep(lent);
  const renewing = loan.renew(reportOn(lent));
  const { lease, leaseId } = await take(name, 'refused');
  const signal = { kind: 'overload', retryAfterMs: null, slotsMax: null, hints: [] } as const;
  await pool(name).report(leaseId, signal, false);
  expect(await renewing).toBe('revoking');
  await lease.release('failed', 529);
  await pool(name).giveBack(backOf(lent));
  loan[Symbol.dispose]();
});

it('a call takes a lease of its own in place of its slot, by whatever it says first', async () => {
  const lent = await lentOf();
  const [first = '', second = '', third = ''] = lent.slots;
  const held = (ticket: string, slot: string) => {
    const own = { leaseId: `${ticket}.1`, attachment: lent.attachment };
    return heldBy(name, own, { lent: { loan: lent.loan, slot } });
  };
  const resumed = await pool(name).resume(held('long', first));
  expect(resumed.kind).toBe('granted');
  await untilStatus(name, { in_use: 1, lent: lent.slots.length - 1 });
  expect(await pool(name).leases()).toMatchObject([{ id: 'long.1', slots: 1, caller: 'caller' }]);
  await pool(name).release('ends.1', 'failed', 500, undefined, held('ends', second));
  await untilStatus(name, { in_use: 1, lent: lent.slots.length - 2 });
  // Once more changes nothing, nor does a late try to take it up.
  await pool(name).release('ends.1', 'failed', 500, undefined, held('ends', second));
  expect((await pool(name).resume(held('ends', second))).kind).toBe('gone');
  await untilStatus(name, { in_use: 1, lent: lent.slots.length - 2 });
  const egress = { kind: 'egress', retryAfterMs: null, slotsMax: null, hints: [] } as const;
  await pool(name).report('said.1', egress, false, held('said', third));
  await untilStatus(name, { in_use: 2, lent: lent.slots.length - 3 });
  await pool(name).release('said.1', 'failed', 403, undefined, held('said', third));
  if (resumed.kind === 'granted') await resumed.lease.release('success', 200);
  await pool(name).giveBack(backOf(lent));
  await untilStatus(name, { in_use: 0, lent: 0 });
});

it('calls that ended well are counted, charged and remembered as their isolate tells', async () => {
  const lent = await lentOf();
  const before = await pool(name).status();
  const ended = [
    {
      holder: {
        caller: 'caller',
        tenant: 'team',
        agent: 'run',
        upstream: 'openai',
        model: 'gpt-4o',
      },
      lane: 'normal' as const,
      status: 200,
      calls: 3,
      heldMs: 60,
      last: [[idOf('told.1'), 120, 100]] as const,
    },
  ];
  const loan = await keep(lent);
  const renewed = loan.renew(reportOn(lent, { used: 1, peak: 2, ended }));
  await untilStatus(name, { in_use: 1, granted_total: before.granted_total + 3 });
  expect((await pool(name).metrics()).ended_total['success']).toBe(before.granted_total + 3);
  expect(await pool(name).decisions({ ids: ['told.1'] })).toMatchObject([
    { lease: 'told.1', tenant: 'team', agent: 'run', upstream_status: 200, ended: 'success' },
  ]);
  expect(await renewed).toBe('ok');
  await pool(name).giveBack(backOf(lent));
  loan[Symbol.dispose]();
});

it('slots of an isolate that is gone come back after five seconds, kept ones after a TTL', async () => {
  const never = await lentOf();
  await passAwake(name, 4_000);
  await untilStatus(name, { lent: never.slots.length });
  await passAwake(name, 1_500);
  await untilStatus(name, { lent: 0 });
  const left = await lentOf();
  const loan = await keep(left);
  await passAwake(name, 20_000);
  await untilStatus(name, { lent: left.slots.length });
  loan[Symbol.dispose]();
  // The runtime tells the object in its own time.
  await expect.poll(async () => (await pool(name).keepPrefetch(reportOn(left))).kind).toBe('kept');
  await passAwake(name, 6_000);
  const kept = await pool(name).keepPrefetch(reportOn(left));
  expect(['kept', 'gone']).toContain(kept.kind);
  await pool(name).giveBack(backOf(left));
  await untilStatus(name, { lent: 0, expired_total: 0 });
});

it('after a reset nobody knows the loan, and what was lent comes back slot by slot', async () => {
  const lent = await lentOf();
  const [first = '', ...rest] = lent.slots;
  await resetPool(name);
  expect(await pool(name).keepPrefetch(reportOn(lent))).toEqual({ kind: 'gone' });
  const { unclaimed } = await pool(name).status();
  expect(unclaimed).toBeGreaterThanOrEqual(lent.slots.length);
  await pool(name).giveBack(backOf(lent, rest));
  // Twice is once.
  await pool(name).giveBack(backOf(lent, rest));
  await untilStatus(name, { in_use: 0, unclaimed: unclaimed - rest.length });
  const own = { leaseId: 'own.1', attachment: lent.attachment };
  const held = heldBy(name, own, { lent: { loan: lent.loan, slot: first } });
  const resumed = await pool(name).resume(held);
  expect(resumed.kind).toBe('granted');
  await untilStatus(name, { in_use: 1, unclaimed: unclaimed - rest.length - 1 });
  if (resumed.kind === 'granted') await resumed.lease.release('success', 200);
  expect(await borrow()).toBeNull();
  await untilStatus(name, { resurrected_total: 0 });
  await passAwake(name, 46_000);
  await untilStatus(name, { unclaimed: 0 });
});

it('slots whose answer got lost lapse while their isolate goes on', async () => {
  const lost = await lentOf();
  // The same loan: of its first slots the isolate never hears.
  const lent = await lentOf();
  expect(lent.loan).toBe(lost.loan);
  const loan = await keep(lent);
  const answers: string[] = [];
  while (answers.length < 20 && answers.at(-1) !== 'revoking') {
    const renewed = loan.renew(reportOn(lent));
    await passAwake(name, 1_100);
    answers.push(await renewed);
  }
  // They might have been on their way.
  expect(answers.slice(0, 2)).toEqual(['ok', 'ok']);
  expect(answers.at(-1)).toBe('revoking');
  await pool(name).giveBack(backOf(lent));
  loan[Symbol.dispose]();
  // The runtime tells the object in its own time.
  await expect
    .poll(async () => {
      await passAwake(name, 6_000);
      return (await pool(name).status()).lent;
    })
    .toBe(0);
});

it('an instance that another one has replaced takes back nothing that was lent by that', async () => {
  const lent = await lentOf();
  const newer = backOf({ ...lent, attachment: lent.attachment + 3_600_000_000 });
  const refusal = await inside(name, (instance) => instance.giveBack(newer).catch(String));
  expect(refusal).toContain('a newer instance has prefetched the slots');
  await untilStatus(name, { lent: lent.slots.length });
  await pool(name).giveBack(backOf(lent));
  await untilStatus(name, { lent: 0 });
});
