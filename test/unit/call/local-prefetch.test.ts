import { beforeEach, expect, test } from 'vitest';
import { LocalPrefetch, type LocalSlot } from '../../../src/call/acquire/local-prefetch.ts';
import { leaseId } from '../../../src/core/words/ids.ts';
import { PREFETCH_STARTS_MS, PREFETCH_TTL_MS } from '../../../src/core/words/settings.ts';

/** Slots that this isolate was lent, as it counts them. */

const CALL = {
  leaseId: leaseId('call.1'),
  holder: { caller: 'caller', tenant: 'caller', agent: null, upstream: 'up', model: null },
  lane: 'normal',
} as const;

const LOAN = leaseId('loan');

let now = 0;
let prefetch: LocalPrefetch;

beforeEach(() => {
  now = 1_000_000;
  prefetch = new LocalPrefetch(LOAN, 1, now, { now: () => now });
  prefetch.add({ loan: LOAN, slots: ['a', 'b', 'c'].map(leaseId), attachment: 7 });
});

function take(): LocalSlot {
  const slot = prefetch.take();
  if (slot === null) throw new Error('none is free');
  return slot;
}

/** As a keeper does whose message is acknowledged. */
function renew(): void {
  prefetch.noteRenewed(now);
}

test('no call starts on it once its last renewal is too old, and one does after the next', () => {
  now += PREFETCH_STARTS_MS - 1;
  prefetch.takeBack(take());
  now += 1;
  expect(prefetch.take()).toBeNull();
  renew();
  expect(prefetch.take()).not.toBeNull();
});

test('its report tells which slots it has, and which of them calls run on', () => {
  const [first, second] = [take(), take()];
  expect(prefetch.report()).toMatchObject({ known: 3, used: 2 });
  // Its pool knows it as a lease soon.
  prefetch.own(first);
  expect(prefetch.report()).toMatchObject({ known: 2, used: 1 });
  prefetch.part(first);
  prefetch.note(CALL, second, 200, now);
  prefetch.takeBack(second);
  expect(prefetch.report()).toMatchObject({ known: 2, used: 0, peak: 2, ended: [{ calls: 1 }] });
  expect(prefetch.report()).toMatchObject({ known: 2, used: 0, peak: 0, ended: [] });
});

test('the slot of a call that died with its request is not told of any more', () => {
  const slot = take();
  for (let ms = 0; ms < PREFETCH_TTL_MS; ms += 1_000) {
    expect(prefetch.report()).toMatchObject({ known: 3, used: 1 });
    now += 1_000;
    renew();
  }
  expect(prefetch.report()).toMatchObject({ known: 2, used: 0 });
  prefetch.takeFree();
  expect(prefetch.isEmpty).toBe(true);
  // It lives, and all stood still meanwhile.
  prefetch.own(slot);
  expect(prefetch.report()).toMatchObject({ known: 0, used: 0 });
});

test('one that is called back gives each slot back as its call ends', () => {
  const slot = take();
  prefetch.end(false);
  expect(prefetch.take()).toBeNull();
  expect(prefetch.takeFree()).toHaveLength(2);
  expect(prefetch.takeBack(slot)).toBe(true);
  expect(prefetch.isEmpty).toBe(true);
});

test('of two keepers the older one stops, and a lost one is replaced after a second', () => {
  const older = prefetch.beginKeeping();
  expect(prefetch.needsKeeper).toBe(false);
  now += 999;
  expect(prefetch.needsKeeper).toBe(false);
  now += 1;
  expect(prefetch.needsKeeper).toBe(true);
  const newer = prefetch.beginKeeping();
  expect(prefetch.isKeptBy(older)).toBe(false);
  expect(prefetch.isKeptBy(newer)).toBe(true);
  // What the older one says at its end changes nothing.
  prefetch.endKeeping(older);
  expect(prefetch.needsKeeper).toBe(false);
  prefetch.endKeeping(newer);
  expect(prefetch.needsKeeper).toBe(true);
});

test('slots that come after it was called back, or of a loan before it, come too late', () => {
  const more = { loan: LOAN, slots: [leaseId('d')], attachment: 8 };
  expect(prefetch.comesAfter(more)).toBe(false);
  expect(prefetch.comesAfter({ ...more, loan: leaseId('newer') })).toBe(false);
  expect(prefetch.comesAfter({ ...more, loan: leaseId('older'), attachment: 6 })).toBe(true);
  prefetch.end(false);
  expect(prefetch.comesAfter(more)).toBe(true);
  expect(prefetch.comesAfter({ ...more, loan: leaseId('newer') })).toBe(false);
});

test('its report adds up what providers reported, by team and model', () => {
  const ended = (model: string | null, tokens: number | null, price = 1): void => {
    const slot = take();
    const seen = tokens === null ? null : { inputTokens: tokens, outputTokens: 1 };
    const used = { requests: 1, inputTokens: tokens ?? 0, outputTokens: tokens === null ? 0 : 1 };
    const bill = { team: 'apps', model };
    const isUnpriced = price === 0;
    const usd = tokens === null ? 0 : price;
    prefetch.note(CALL, slot, 200, now, undefined, { ...used, usd, seen, isUnpriced, bill });
    prefetch.takeBack(slot);
  };
  ended('gpt-4o', 10);
  ended('gpt-4o', 20);
  ended('other', 5, 0);
  ended('other', null);
  const [reported] = prefetch.report().ended;
  const sums = { team: 'apps', cachedTokens: 0, waited: 0, calls: 2 };
  expect(reported).toMatchObject({ calls: 4 });
  expect(reported?.costs).toEqual([
    { ...sums, model: 'gpt-4o', usd: 2, inputTokens: 30, outputTokens: 2, unpriced: 0 },
    {
      ...sums,
      model: 'other',
      usd: 0,
      inputTokens: 5,
      outputTokens: 1,
      unpriced: 1,
      unreported: 1,
    },
  ]);
  expect(prefetch.report().ended).toEqual([]);
});

test('its report is bounded, however many models upstreams name', () => {
  for (let count = 0; count < 200; count++) {
    const slot = take();
    const seen = { inputTokens: 1, outputTokens: 1 };
    const bill = { team: null, model: `model-${count}` };
    prefetch.note(CALL, slot, 200, now, undefined, { requests: 1, ...seen, usd: 1, seen, bill });
    prefetch.takeBack(slot);
  }
  const [reported] = prefetch.report().ended;
  expect(reported?.costs?.length).toBeLessThanOrEqual(51);
  expect(reported?.costs?.reduce((sum, { usd }) => sum + usd, 0)).toBe(200);
});

test('calls that stand in no costs leave none', () => {
  const slot = take();
  prefetch.note(CALL, slot, 200, now);
  expect(prefetch.report().ended[0]).not.toHaveProperty('costs');
});
