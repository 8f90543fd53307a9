import { beforeEach, expect, test } from 'vitest';
import { LocalPrefetch, type LocalSlot } from '../../../src/call/acquire/local-loan.ts';
import { LOAN_STARTS_MS, LOAN_TTL_MS } from '../../../src/core/words/settings.ts';

/** Slots that this isolate was lent, as it counts them. */

const CALL = {
  leaseId: 'call.1',
  caller: 'caller',
  agent: null,
  upstream: 'up',
  model: null,
} as const;

let now = 0;
let loan: LocalPrefetch;

beforeEach(() => {
  now = 1_000_000;
  loan = new LocalPrefetch('loan', 1, now, { now: () => now });
  loan.add({ loan: 'loan', slots: ['a', 'b', 'c'], attachment: 7 });
});

function take(): LocalSlot {
  const slot = loan.take();
  if (slot === null) throw new Error('none is free');
  return slot;
}

/** As a keeper does whose message is acknowledged. */
function renew(): void {
  loan.noteRenewed(now);
}

test('no call starts on it once its last renewal is too old, and one does after the next', () => {
  now += LOAN_STARTS_MS - 1;
  loan.takeBack(take());
  now += 1;
  expect(loan.take()).toBeNull();
  renew();
  expect(loan.take()).not.toBeNull();
});

test('its report tells which slots it has, and which of them calls run on', () => {
  const [first, second] = [take(), take()];
  expect(loan.report()).toMatchObject({ known: 3, used: 2 });
  // Its pool knows it as a lease soon.
  loan.own(first);
  expect(loan.report()).toMatchObject({ known: 2, used: 1 });
  loan.part(first);
  loan.note(CALL, second, 200, now);
  loan.takeBack(second);
  expect(loan.report()).toMatchObject({ known: 2, used: 0, peak: 2, ended: [{ calls: 1 }] });
  expect(loan.report()).toMatchObject({ known: 2, used: 0, peak: 0, ended: [] });
});

test('the slot of a call that died with its request is not told of any more', () => {
  const slot = take();
  for (let ms = 0; ms < LOAN_TTL_MS; ms += 1_000) {
    expect(loan.report()).toMatchObject({ known: 3, used: 1 });
    now += 1_000;
    renew();
  }
  expect(loan.report()).toMatchObject({ known: 2, used: 0 });
  loan.takeFree();
  expect(loan.isEmpty).toBe(true);
  // It lives, and all stood still meanwhile.
  loan.own(slot);
  expect(loan.report()).toMatchObject({ known: 0, used: 0 });
});

test('one that is called back gives each slot back as its call ends', () => {
  const slot = take();
  loan.end(false);
  expect(loan.take()).toBeNull();
  expect(loan.takeFree()).toHaveLength(2);
  expect(loan.takeBack(slot)).toBe(true);
  expect(loan.isEmpty).toBe(true);
});

test('of two keepers the older one stops, and a lost one is replaced after a second', () => {
  const older = loan.beginKeeping();
  expect(loan.needsKeeper).toBe(false);
  now += 999;
  expect(loan.needsKeeper).toBe(false);
  now += 1;
  expect(loan.needsKeeper).toBe(true);
  const newer = loan.beginKeeping();
  expect(loan.isKeptBy(older)).toBe(false);
  expect(loan.isKeptBy(newer)).toBe(true);
  // What the older one says at its end changes nothing.
  loan.endKeeping(older);
  expect(loan.needsKeeper).toBe(false);
  loan.endKeeping(newer);
  expect(loan.needsKeeper).toBe(true);
});

test('slots that come after it was called back, or of a loan before it, come too late', () => {
  const more = { loan: 'loan', slots: ['d'], attachment: 8 };
  expect(loan.comesAfter(more)).toBe(false);
  expect(loan.comesAfter({ ...more, loan: 'newer' })).toBe(false);
  expect(loan.comesAfter({ ...more, loan: 'older', attachment: 6 })).toBe(true);
  loan.end(false);
  expect(loan.comesAfter(more)).toBe(true);
  expect(loan.comesAfter({ ...more, loan: 'newer' })).toBe(false);
});

test('its report adds up what providers reported, by team and model', () => {
  const ended = (model: string | null, tokens: number | null, price = 1): void => {
    const slot = take();
    const seen = tokens === null ? null : { inputTokens: tokens, outputTokens: 1 };
    const used = { requests: 1, inputTokens: tokens ?? 0, outputTokens: tokens === null ? 0 : 1 };
    const bill = { team: 'apps', model };
    const isUnpriced = price === 0;
    const usd = tokens === null ? 0 : price;
    loan.note(CALL, slot, 200, now, undefined, { ...used, usd, seen, isUnpriced, bill });
    loan.takeBack(slot);
  };
  ended('gpt-4o', 10);
  ended('gpt-4o', 20);
  ended('other', 5, 0);
  ended('other', null);
  const [told] = loan.report().ended;
  const sums = { team: 'apps', cachedTokens: 0, waited: 0, calls: 2 };
  expect(told).toMatchObject({ calls: 4 });
  expect(told?.costs).toEqual([
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
  expect(loan.report().ended).toEqual([]);
});

test('its report is bounded, however many models upstreams name', () => {
  for (let count = 0; count < 200; count++) {
    const slot = take();
    const seen = { inputTokens: 1, outputTokens: 1 };
    const bill = { team: null, model: `model-${count}` };
    loan.note(CALL, slot, 200, now, undefined, { requests: 1, ...seen, usd: 1, seen, bill });
    loan.takeBack(slot);
  }
  const [told] = loan.report().ended;
  expect(told?.costs?.length).toBeLessThanOrEqual(51);
  expect(told?.costs?.reduce((sum, { usd }) => sum + usd, 0)).toBe(200);
});

test('calls that stand in no costs leave none', () => {
  const slot = take();
  loan.note(CALL, slot, 200, now);
  expect(loan.report().ended[0]).not.toHaveProperty('costs');
});
