import type { RateSettings } from '../../../src/core/words/limits.ts';
import assert from 'node:assert/strict';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import type { RefusalKind } from '../../../src/core/words/signal.ts';
import type { Usage, Settlement } from '../../../src/core/words/usage.ts';

/** Everything that a call took, and what it turned out to be. */
interface Taken {
  readonly at: number;
  readonly reserved: Usage;
  readonly reservedUsd: number;
  settled: { readonly at: number; readonly actual: Usage; readonly usd: number } | null;
}

/** A limit per minute or second, its figures worked out from the settings and nothing else. */
interface NaiveLimit {
  readonly name: keyof RateSettings;
  readonly perMinute: number | null;
  readonly ratePerMs: number;
  readonly capacity: number;
  /** Of what is larger only this much must be there. */
  readonly wholeMax: number;
  readonly amountOf: (usage: Usage) => number;
}

const NOTHING: Usage = { requests: 0, inputTokens: 0, outputTokens: 0 };

/** When what was taken has left every window for sure: a bin and the margin after the minute. */
const LEFT_MS = 60_000 + 1_000 + 500;

/** Sums of fractions are off by less than this. */
const EPSILON = 1e-6;

/**
 * Ledger of what should have been taken of the limits, written as plainly as possible: every call with its instant,
 * and a bucket for each limit. A grant must have had room by it; and where it says that there is room for
 * sure, nobody may wait.
 */
export class LimitLedger {
  readonly #taken = new Map<string, Taken>();
  readonly #buckets = new Map<string, { level: number; at: number }>();
  /** How many calls there were when a limit was set that was none before: it counts from then on. */
  readonly #setAfter = new Map<string, number>();
  #pausedUntil = 0;
  #settings: GroupSettings;
  /** False: the limits were changed on the way, or the upstream has said something. */
  isCalm = true;

  constructor(settings: GroupSettings) {
    this.#settings = settings;
  }

  has(id: string): boolean {
    return this.#taken.has(id);
  }

  isOpen(id: string): boolean {
    return this.#taken.get(id)?.settled === null;
  }

  reconfigure(settings: GroupSettings): void {
    if (settings.rates !== this.#settings.rates) this.#buckets.clear();
    const before = this.#limits().map(({ name }) => name);
    this.#settings = settings;
    for (const { name } of this.#limits()) {
      if (!before.includes(name)) this.#setAfter.set(name, this.#taken.size);
    }
    this.isCalm = false;
  }

  /** The upstream refused a call, and this is the first time that it did. */
  refused(kind: RefusalKind, retryAfterMs: number | null, now: number): void {
    this.isCalm = false;
    const pauses = ['requests', 'tokens', 'unknown', 'ramp', 'overload', 'long_window'];
    if (pauses.includes(kind)) {
      this.#pausedUntil = Math.max(this.#pausedUntil, now + (retryAfterMs ?? 0));
    }
    if (kind !== 'requests' && kind !== 'tokens') return;
    for (const limit of this.#limits()) {
      if ((limit.name === 'rpm') !== (kind === 'requests') || limit.name === 'startsPerS') continue;
      const level = this.#level(limit, now);
      if (level > 0) this.#give(limit, -level, now);
    }
  }

  /** A call was granted: it must have had room in everything. */
  grant(id: string, reserved: Usage, usd: number, now: number): void {
    assert.ok(!this.#taken.has(id), `${id} was granted twice`);
    assert.ok(now >= this.#pausedUntil, `${id} was granted in a pause`);
    assert.ok(!this.#settings.paused, `${id} was granted in a group that is paused`);
    for (const limit of this.#limits()) {
      const amount = limit.amountOf(reserved);
      const used = this.#usedSince(limit, now - 60_000) + amount;
      const most = amount === 0 ? Infinity : (limit.perMinute ?? Infinity);
      assert.ok(used <= most, `${id}: ${used} in a minute, ${limit.name} is ${most}`);
      const level = this.#level(limit, now);
      const isThere = level + EPSILON >= Math.min(amount, limit.wholeMax, limit.capacity);
      assert.ok(isThere || amount === 0, `${id}: ${limit.name} has ${level}, and not ${amount}`);
      this.#give(limit, -amount, now);
    }
    this.#checkBudgets(id, usd, now);
    this.#taken.set(id, { at: now, reserved, reservedUsd: usd, settled: null });
  }

  /** A call has ended: `unused` takes nothing, and of whom nobody knows counts what was reserved. */
  settle(id: string, how: Settlement | 'unused' | null, now: number): void {
    const taken = this.#taken.get(id);
    assert.ok(taken !== undefined && taken.settled === null, `${id} was settled twice`);
    const { reserved, reservedUsd } = taken;
    const actual: Usage = how === 'unused' ? NOTHING : (how ?? reserved);
    const usd = how === 'unused' ? 0 : (how?.usd ?? reservedUsd);
    taken.settled = { at: now, actual, usd };
    for (const limit of this.#limits()) {
      // Whatever the provider counts of it, the call did start.
      if (limit.name === 'startsPerS' && how !== 'unused') continue;
      this.#give(limit, limit.amountOf(reserved) - limit.amountOf(actual), now);
    }
  }

  /** Whether there is room for sure, slots aside. */
  hasRoom(demand: Usage, now: number): boolean {
    return this.#limits().every((limit) => {
      const amount = limit.amountOf(demand);
      if (amount === 0) return true;
      const used = this.#countedSince(limit, now - LEFT_MS) + amount;
      const level = this.#level(limit, now) - EPSILON;
      return (
        used <= (limit.perMinute ?? Infinity) &&
        level >= Math.min(amount, limit.wholeMax, limit.capacity)
      );
    });
  }

  /** Sums what was counted in all, and what is set aside. */
  totals(): { requests: number; tokens: number; reservedUsd: number; spentUsd: number } {
    const totals = { requests: 0, tokens: 0, reservedUsd: 0, spentUsd: 0 };
    for (const { reserved, reservedUsd, settled } of this.#taken.values()) {
      const { requests, inputTokens, outputTokens } = settled?.actual ?? reserved;
      totals.requests += requests;
      totals.tokens += inputTokens + outputTokens;
      if (settled === null) totals.reservedUsd += reservedUsd;
      totals.spentUsd += settled?.usd ?? 0;
    }
    return totals;
  }

  #checkBudgets(id: string, usd: number, now: number): void {
    const { perHourUsd, perDayUsd, perMonthUsd } = this.#settings.budgets;
    // The clock of the tests never comes near the end of its month.
    const lengths = [3_600_000, 86_400_000, 1e12];
    for (const [index, limit] of [perHourUsd, perDayUsd, perMonthUsd].entries()) {
      const lengthMs = lengths[index] ?? 0;
      let committed = usd;
      for (const { settled, reservedUsd } of this.#taken.values()) {
        const isCurrent = Math.floor((settled?.at ?? 0) / lengthMs) === Math.floor(now / lengthMs);
        if (settled === null) committed += reservedUsd;
        else if (isCurrent) committed += settled.usd;
      }
      const isWithin = usd === 0 || committed <= (limit ?? Infinity) + EPSILON;
      assert.ok(isWithin, `${id}: ${committed} USD where ${limit} are allowed`);
    }
  }

  /** Sums what was taken since, as far as it had room: what was used beyond the estimate is nobody's fault. */
  #usedSince({ name, amountOf }: NaiveLimit, since: number): number {
    let used = 0;
    const counting = [...this.#taken.values()].slice(this.#setAfter.get(name) ?? 0);
    for (const { at, reserved, settled } of counting) {
      const actual = settled === null ? amountOf(reserved) : amountOf(settled.actual);
      if (at >= since) used += Math.min(actual, amountOf(reserved));
    }
    return used;
  }

  /** The same, with what was used beyond the estimate, from when it was known. */
  #countedSince(limit: NaiveLimit, since: number): number {
    let counted = this.#usedSince(limit, since);
    for (const { reserved, settled } of this.#taken.values()) {
      if (settled === null || settled.at < since) continue;
      counted += Math.max(0, limit.amountOf(settled.actual) - limit.amountOf(reserved));
    }
    return counted;
  }

  #level({ name, ratePerMs, capacity }: NaiveLimit, now: number): number {
    const { level, at } = this.#buckets.get(name) ?? { level: capacity, at: now };
    return Math.min(capacity, level + ratePerMs * (now - at));
  }

  #give(limit: NaiveLimit, amount: number, now: number): void {
    const level = Math.min(limit.capacity, this.#level(limit, now) + amount);
    this.#buckets.set(limit.name, { level, at: now });
  }

  #limits(): NaiveLimit[] {
    const { rates } = this.#settings;
    const perMinute = (
      name: 'rpm' | 'tpm' | 'itpm' | 'otpm',
      amountOf: NaiveLimit['amountOf'],
    ): NaiveLimit[] => {
      const limit = rates[name];
      if (limit === null) return [];
      const ratePerMs = (0.97 * limit) / 60_000;
      const capacity = Math.max(1, ratePerMs * rates.burstMs);
      const wholeMax = Math.max(1, limit / 100);
      return [{ name, perMinute: limit, ratePerMs, capacity, wholeMax, amountOf }];
    };
    const { startsPerS: starts } = rates;
    return [
      ...perMinute('rpm', ({ requests }) => requests),
      ...perMinute('tpm', ({ inputTokens, outputTokens }) => inputTokens + outputTokens),
      ...perMinute('itpm', ({ inputTokens }) => inputTokens),
      ...perMinute('otpm', ({ outputTokens }) => outputTokens),
      ...(starts === null
        ? []
        : [
            {
              name: 'startsPerS' as const,
              perMinute: null,
              ratePerMs: starts / 1_000,
              capacity: Math.max(1, starts / 10),
              wholeMax: 1,
              amountOf: ({ requests }: Usage) => requests,
            },
          ]),
    ];
  }
}
