import { beforeEach, describe, expect, test } from 'vitest';
import {
  drain,
  fits,
  fitsAt,
  fullBucket,
  give,
  levelAt,
  lowerTo,
  take,
  type Bucket,
} from '../../../src/core/parts/rate-limits.ts';
import { instant } from '../../../src/core/words/ids.ts';

/** A bucket of 100 that gets 2 per millisecond. */
const PARAMS = { ratePerMs: 2, capacity: 100, wholeMax: 100 };
const NOW = instant(1_000);
const at = (ms: number) => instant(1_000 + ms);

let bucket: Bucket;

beforeEach(() => {
  bucket = fullBucket(PARAMS, NOW);
});

test('a bucket grants what it holds and not a bit more', () => {
  take(bucket, PARAMS, 40, NOW);
  expect(fits(bucket, PARAMS, 60, NOW)).toBe(true);
  expect(fits(bucket, PARAMS, 60.01, NOW)).toBe(false);
});

test('it fills with time, up to its capacity', () => {
  take(bucket, PARAMS, 100, NOW);
  expect(levelAt(bucket, PARAMS, at(20))).toBe(40);
  expect(levelAt(bucket, PARAMS, at(5_000))).toBe(100);
});

test('it says from which millisecond on an amount fits', () => {
  take(bucket, PARAMS, 100, NOW);
  const from = fitsAt(bucket, PARAMS, 61, NOW);
  expect(from).toBe(at(31));
  expect(fits(bucket, PARAMS, 61, at(30))).toBe(false);
  expect(fits(bucket, PARAMS, 61, from)).toBe(true);
  expect(fitsAt(bucket, PARAMS, 0, NOW)).toBe(NOW);
});

test('of a large amount a part must be there, and the rest is owed', () => {
  const params = { ...PARAMS, wholeMax: 20 };
  take(bucket, params, 81, NOW);
  expect(fits(bucket, params, 20, NOW)).toBe(false);
  expect(fitsAt(bucket, params, 90, NOW)).toBe(at(1));
  take(bucket, params, 90, at(1));
  expect(levelAt(bucket, params, at(1))).toBe(-69);
});

describe('an amount larger than the capacity', () => {
  test('waits for a full bucket and no longer', () => {
    take(bucket, PARAMS, 1, NOW);
    expect(fitsAt(bucket, PARAMS, 500, NOW)).toBe(at(1));
    expect(fits(bucket, PARAMS, 500, at(1))).toBe(true);
  });

  test('leaves a debt, which those after it wait for', () => {
    take(bucket, PARAMS, 500, NOW);
    expect(levelAt(bucket, PARAMS, NOW)).toBe(-400);
    expect(fitsAt(bucket, PARAMS, 10, NOW)).toBe(at(205));
  });
});

test('a refund comes back at once, and what would overflow is lost', () => {
  take(bucket, PARAMS, 80, NOW);
  give(bucket, PARAMS, 30, NOW);
  expect(levelAt(bucket, PARAMS, NOW)).toBe(50);
  give(bucket, PARAMS, 70, NOW);
  expect(levelAt(bucket, PARAMS, NOW)).toBe(100);
});

test('a debit may be of more than there is', () => {
  give(bucket, PARAMS, -130, NOW);
  expect(levelAt(bucket, PARAMS, NOW)).toBe(-30);
});

test('emptied it begins at nothing, and a debt stays', () => {
  drain(bucket, PARAMS, NOW);
  expect(levelAt(bucket, PARAMS, at(1))).toBe(2);
  take(bucket, PARAMS, 50, at(1));
  drain(bucket, PARAMS, at(1));
  expect(levelAt(bucket, PARAMS, at(1))).toBe(-48);
});

test('it is lowered to a level and never raised to it', () => {
  lowerTo(bucket, PARAMS, 30, NOW);
  expect(levelAt(bucket, PARAMS, NOW)).toBe(30);
  lowerTo(bucket, PARAMS, 70, NOW);
  expect(levelAt(bucket, PARAMS, NOW)).toBe(30);
});

describe('a clock that goes back', () => {
  test('takes nothing away', () => {
    expect(levelAt(bucket, PARAMS, at(-500))).toBe(100);
  });

  test('is not filled for twice', () => {
    take(bucket, PARAMS, 100, at(20));
    take(bucket, PARAMS, 0, at(-980));
    expect(levelAt(bucket, PARAMS, at(30))).toBe(20);
  });

  test('makes a wait count from the later instant', () => {
    take(bucket, PARAMS, 100, NOW);
    expect(fitsAt(bucket, PARAMS, 20, at(-500))).toBe(at(10));
  });
});

test('a bucket without capacity grants nothing, ever', () => {
  const none = { ratePerMs: 0, capacity: 0, wholeMax: 0 };
  expect(fitsAt(fullBucket(none, NOW), none, 1, NOW)).toBe(Infinity);
});

test('less capacity cuts what is held; more brings nothing by itself', () => {
  expect(levelAt(bucket, { ...PARAMS, capacity: 10 }, NOW)).toBe(10);
  expect(levelAt(bucket, { ...PARAMS, capacity: 900 }, NOW)).toBe(100);
});

test('it is the same after it was written and read', () => {
  take(bucket, PARAMS, 130, NOW);
  const read = JSON.parse(JSON.stringify(bucket)) as Bucket;
  expect(levelAt(read, PARAMS, at(40))).toBe(50);
});
