import type { LimitName, GroupSettings } from '../../../src/core/words/settings.ts';
import assert from 'node:assert/strict';
import type { Amounts } from '../../../src/core/parts/demand.ts';
import type { LeaseId } from '../../../src/core/words/ids.ts';
import type { RefusalKind } from '../../../src/core/words/signal.ts';
import type { CallUsage, Settlement } from '../../../src/core/words/ticket.ts';
import { checkBlocks, LimitBlocks } from './limit-blocks.ts';

/** Everything that a call took, and what it turned out to be. */
interface LimitLedgerTaken {
  readonly at: number;
  readonly reserved: CallUsage;
  readonly reservedUsd: number;
  settled: { readonly at: number; readonly actual: CallUsage; readonly usd: number } | null;
}

/** A limit per minute or second, its figures worked out from the settings and nothing else. */
interface NaiveLimit {
  readonly name: LimitName;
  readonly perMinute: number | null;
  readonly ratePerMs: number;
  readonly capacity: number;
  /** Of what is larger only this much must be there. */
  readonly wholeMax: number;
  readonly amountOf: (usage: CallUsage) => number;
}

const NOTHING: CallUsage = { requests: 0, inputTokens: 0, outputTokens: 0 };

const requestsOf = ({ requests }: CallUsage): number => requests;
const tokensOf = ({ inputTokens, outputTokens }: CallUsage): number => inputTokens + outputTokens;

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
  readonly #taken = new Map<LeaseId, LimitLedgerTaken>();
  readonly #buckets = new Map<string, { level: number; at: number }>();
  /** How many calls there were when a limit was set that was none before: it counts from then on. */
  readonly #setAfter = new Map<string, number>();
  readonly #lost = new LimitBlocks();
  #pausedUntil = 0;
  #settings: GroupSettings;
  /** False: the limits were changed on the way, or the upstream has said something. */
  isCalm = true;

  constructor(settings: GroupSettings) {
    this.#settings = settings;
  }

  /** Slots that nobody has claimed. */
  get unclaimed(): number {
    return this.#lost.unclaimed;
  }

  has(id: LeaseId): boolean {
    return this.#taken.has(id);
  }

  isOpen(id: LeaseId): boolean {
    return this.#taken.get(id)?.settled === null;
  }

  /** Lists the calls that are not settled. */
  openIds(): LeaseId[] {
    return [...this.#taken].filter(([, { settled }]) => settled === null).map(([id]) => id);
  }

  /**
   * The instance was replaced, which had set `ahead` aside: all of that counts as used now. And `mark` slots count as
   * held until they are claimed, for one TTL.
   */
  reset(ahead: Amounts, mark: number, now: number): void {
    const isInUse = mark > 0 || Object.keys(ahead).length > 0;
    if (isInUse) checkBlocks(ahead, this.#settings, this.#largest());
    this.#lost.lose(ahead, mark, now);
    for (const limit of this.#limits()) {
      const level = this.#level(limit, now);
      // How many have just started is forgotten, where any may have.
      const isForgotten = limit.name === 'startsPerS' && mark > 0;
      this.#give(limit, -(isForgotten ? Math.max(0, level) : (ahead[limit.name] ?? 0)), now);
    }
  }

  /** A holder has taken its lease up again. */
  claim(slots: number, now: number): void {
    this.#lost.claim(slots, now);
  }

  /** Notes the time, at which slots that nobody has claimed may come free. */
  wake(now: number): void {
    this.#lost.wake(now);
  }

  reconfigure(settings: GroupSettings): void {
    if (settings.rates !== this.#settings.rates) this.#buckets.clear();
    const before = this.#limits().map(({ name }) => name);
    this.#settings = settings;
    for (const { name } of this.#limits()) {
      if (before.includes(name)) continue;
      this.#setAfter.set(name, this.#taken.size);
      this.#lost.forget(name);
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
  grant(id: LeaseId, reserved: CallUsage, usd: number, now: number): void {
    assert.ok(!this.#taken.has(id), `${id} was granted twice`);
    assert.ok(now >= this.#pausedUntil, `${id} was granted in a pause`);
    assert.ok(!this.#settings.paused, `${id} was granted in a group that is paused`);
    for (const limit of this.#limits()) {
      const amount = limit.amountOf(reserved);
      const used = this.#usedSince(limit, now - 60_000) + amount;
      const most = amount === 0 ? Infinity : (limit.perMinute ?? Infinity);
      assert.ok(used <= most + EPSILON, `${id}: ${used} in a minute, ${limit.name} is ${most}`);
      const level = this.#level(limit, now);
      const isThere = level + EPSILON >= Math.min(amount, limit.wholeMax, limit.capacity);
      assert.ok(isThere || amount === 0, `${id}: ${limit.name} has ${level}, and not ${amount}`);
      this.#give(limit, -amount, now);
    }
    this.#checkBudgets(id, usd, now);
    this.#taken.set(id, { at: now, reserved, reservedUsd: usd, settled: null });
  }

  /** A call has ended: `unused` takes nothing, and of whom nobody knows counts what was reserved. */
  settle(id: LeaseId, how: Settlement | 'unused' | null, now: number): void {
    const taken = this.#taken.get(id);
    assert.ok(taken !== undefined && taken.settled === null, `${id} was settled twice`);
    const { reserved, reservedUsd } = taken;
    const actual: CallUsage = how === 'unused' ? NOTHING : (how ?? reserved);
    const usd = how === 'unused' ? 0 : (how?.usd ?? reservedUsd);
    taken.settled = { at: now, actual, usd };
    for (const limit of this.#limits()) {
      // Whatever the provider counts of it, the call did start.
      if (limit.name === 'startsPerS' && how !== 'unused') continue;
      this.#give(limit, limit.amountOf(reserved) - limit.amountOf(actual), now);
    }
  }

  /** Whether there is room for sure, slots aside. */
  hasRoom(demand: CallUsage, now: number): boolean {
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
    totals.requests += this.#lost.usedOf('rpd');
    totals.tokens += this.#lost.usedOf('tpd');
    totals.reservedUsd += this.#lost.reservedUsd();
    totals.spentUsd += this.#lost.spentUsd();
    return totals;
  }

  /** Finds the most that one call has taken of each limit. */
  #largest(): Amounts {
    const largest: Amounts = {};
    const note = (name: keyof Amounts, amount: number): void => {
      largest[name] = Math.max(largest[name] ?? 0, amount);
    };
    for (const { reserved, reservedUsd } of this.#taken.values()) {
      for (const { name, amountOf } of this.#limits()) note(name, amountOf(reserved));
      note('rpd', requestsOf(reserved));
      note('tpd', tokensOf(reserved));
      note('usd', reservedUsd);
    }
    return largest;
  }

  #checkBudgets(id: LeaseId, usd: number, now: number): void {
    const { perHourUsd, perDayUsd, perMonthUsd } = this.#settings.budgets;
    // The clock of the tests never comes near the end of its month.
    const lengths = [3_600_000, 86_400_000, 1e12];
    for (const [index, limit] of [perHourUsd, perDayUsd, perMonthUsd].entries()) {
      const lengthMs = lengths[index] ?? 0;
      const isNow = (at: number): boolean =>
        Math.floor(at / lengthMs) === Math.floor(now / lengthMs);
      let committed = usd + this.#lost.reservedUsd() + this.#lost.spentUsd(isNow);
      for (const { settled, reservedUsd } of this.#taken.values()) {
        if (settled === null) committed += reservedUsd;
        else if (isNow(settled.at)) committed += settled.usd;
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
    return used + this.#lost.usedOf(name, since);
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
      ...perMinute('rpm', requestsOf),
      ...perMinute('tpm', tokensOf),
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
              amountOf: requestsOf,
            },
          ]),
    ];
  }
}
