import fc from 'fast-check';
import { assert, expect, test } from 'vitest';
import {
  fits,
  fitsAt,
  fullBucket,
  give,
  levelAt,
  take as takeFrom,
  type Bucket,
  type BucketParams,
} from '../../../src/core/parts/rate-limits.ts';
import { instant, type InstantMs } from '../../../src/core/words/ids.ts';
import { runs } from '../runs.ts';
import { Gcra } from './gcra.ts';

/** Buckets against GCRA and against the exact log of what was taken. */

const bucketParamsArb = fc.record({
  ratePerMs: fc.constantFrom(0.001, 0.25, 1, 3),
  capacity: fc.integer({ min: 1, max: 200 }),
  wholeMax: fc.constantFrom(1, 20, 300),
});

type BucketAction =
  | { readonly kind: 'take' | 'give' | 'wait'; readonly amount: number }
  | { readonly kind: 'pass'; readonly ms: number };

const bucketActionArb: fc.Arbitrary<BucketAction> = fc.oneof(
  fc.record({ kind: fc.constant('take' as const), amount: fc.integer({ min: 0, max: 300 }) }),
  fc.record({ kind: fc.constant('give' as const), amount: fc.integer({ min: -50, max: 50 }) }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: -20, max: 400 }) }),
  fc.record({ kind: fc.constant('wait' as const), amount: fc.integer({ min: 1, max: 300 }) }),
);

const bucketHistoryArb = fc.array(bucketActionArb, { maxLength: 50, size: 'max' });

/** The bucket and GCRA side by side. */
class BucketPair {
  now = instant(1_000);
  readonly #params: BucketParams;
  readonly #bucket: Bucket;
  readonly #gcra: Gcra;

  constructor(params: BucketParams) {
    this.#params = params;
    this.#bucket = fullBucket(params, this.now);
    this.#gcra = new Gcra(params, this.now);
  }

  run(action: BucketAction): void {
    if (action.kind === 'pass') this.now = instant(this.now + action.ms);
    else if (action.kind === 'give') this.#give(action.amount);
    else this.#ask(action.amount, action.kind === 'wait');
    const level = levelAt(this.#bucket, this.#params, this.now);
    assert.closeTo(level, this.#gcra.level(this.now), 1e-6);
  }

  #ask(amount: number, waits: boolean): void {
    const at = fitsAt(this.#bucket, this.#params, amount, this.now);
    assert(at <= this.now || !this.#fits(amount, instant(at - 1)), 'it fits before');
    if (waits) this.now = instant(Math.max(at, this.now));
    const isFree = this.#fits(amount, this.now);
    assert.equal(isFree, at <= this.now);
    assert.equal(isFree, this.#gcra.fits(amount, this.now));
    if (isFree) this.#give(-amount);
  }

  #give(amount: number): void {
    give(this.#bucket, this.#params, amount, this.now);
    this.#gcra.take(-amount, this.now);
  }

  #fits(amount: number, now: InstantMs): boolean {
    return fits(this.#bucket, this.#params, amount, now);
  }
}

test('a bucket decides as GCRA does, and says exactly when there is room', () => {
  fc.assert(
    fc.property(bucketParamsArb, bucketHistoryArb, (params, history) => {
      const pair = new BucketPair(params);
      for (const action of history) pair.run(action);
    }),
    runs(2_000),
  );
});

/** The most that was taken, less what was given, in any stretch, beyond what had flowed in by then. */
function worstExcess(log: readonly { at: number; net: number }[], { ratePerMs }: BucketParams) {
  let worst = 0;
  for (const [index, first] of log.entries()) {
    let net = 0;
    for (const each of log.slice(index)) {
      net += each.net;
      worst = Math.max(worst, net - ratePerMs * (each.at - first.at));
    }
  }
  return worst;
}

test('in any stretch no more is taken than the capacity, what flowed in, and one debt', () => {
  fc.assert(
    fc.property(bucketParamsArb, bucketHistoryArb, (params, history) => {
      let now = instant(1_000);
      let latest = 1_000;
      let largest = 0;
      let debits = 0;
      const bucket = fullBucket(params, now);
      const log: { at: number; net: number }[] = [];
      for (const action of history) {
        if (action.kind === 'pass') {
          now = instant(now + action.ms);
          continue;
        }
        // An instant at which nothing was done to the bucket is none that it knows.
        const at = Math.max(latest, now);
        if (action.kind === 'give') {
          give(bucket, params, action.amount, now);
          debits += Math.max(0, -action.amount);
          log.push({ at, net: -action.amount });
        } else if (fits(bucket, params, action.amount, now)) {
          takeFrom(bucket, params, action.amount, now);
          largest = Math.max(largest, action.amount);
          log.push({ at, net: action.amount });
        } else continue;
        latest = at;
      }
      const { capacity, wholeMax } = params;
      const bound = capacity + Math.max(0, largest - Math.min(wholeMax, capacity)) + debits;
      expect(worstExcess(log, params)).toBeLessThanOrEqual(bound + 1e-6);
    }),
    runs(1_000),
  );
});
