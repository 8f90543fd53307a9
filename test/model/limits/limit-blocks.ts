import assert from 'node:assert/strict';
import type { Amounts } from '../../../src/core/parts/demand.ts';
import { LEASE_TTL_MS, type GroupSettings } from '../../../src/core/words/settings.ts';

/** The part of a limit that an instance had set aside, and that went with it. */
interface LimitBlock {
  readonly name: string;
  readonly amount: number;
  readonly at: number;
}

/** Money that went so. It stays set aside until nobody can come back any more, and then it is spent. */
interface UsdBlock {
  readonly usd: number;
  spentAt: number | null;
}

/** Sums of fractions are off by less than this. */
const EPSILON = 1e-6;

/** Ledger of what resets cost: blocks that count as used, and slots that count as held until they are claimed. */
export class LimitBlocks {
  #blocks: LimitBlock[] = [];
  readonly #usdBlocks: UsdBlock[] = [];
  #orphanedUntil = 0;
  /** Slots that nobody has claimed since the last reset. */
  unclaimed = 0;

  /** The instance was replaced, which had set `ahead` aside, and had marked so many slots. */
  lose(ahead: Amounts, mark: number, now: number): void {
    for (const [name, amount] of Object.entries(ahead)) {
      if (name === 'usd') this.#usdBlocks.push({ usd: amount, spentAt: null });
      else this.#blocks.push({ name, amount, at: now });
    }
    this.unclaimed = mark;
    this.#orphanedUntil = now + LEASE_TTL_MS;
    this.wake(now);
  }

  /** A holder has taken its lease up again. */
  claim(slots: number, now: number): void {
    this.unclaimed -= slots;
    assert.ok(this.unclaimed >= 0, 'more are claimed than were marked');
    this.wake(now);
  }

  /** Notes the time, at which slots that nobody has claimed may come free. */
  wake(now: number): void {
    if (now >= this.#orphanedUntil) this.unclaimed = 0;
    if (this.unclaimed > 0) return;
    for (const block of this.#usdBlocks) block.spentAt ??= now;
  }

  /** A limit is new: it counts from now on. */
  forget(limit: string): void {
    this.#blocks = this.#blocks.filter(({ name }) => name !== limit);
  }

  /** Sums what counts as used of a limit. */
  usedOf(limit: string, since = -Infinity): number {
    const blocks = this.#blocks.filter(({ name, at }) => name === limit && at >= since);
    return blocks.reduce((sum, { amount }) => sum + amount, 0);
  }

  /** Sums the money that is set aside yet. */
  reservedUsd(): number {
    return this.#usdBlocks.reduce((sum, { usd, spentAt }) => sum + (spentAt === null ? usd : 0), 0);
  }

  /** Sums the money that counts as spent in a period. */
  spentUsd(isWithin: (at: number) => boolean = () => true): number {
    let sum = 0;
    for (const { usd, spentAt } of this.#usdBlocks) {
      if (spentAt !== null && isWithin(spentAt)) sum += usd;
    }
    return sum;
  }
}

/**
 * Checks what is set aside: a second of each rate, a hundredth of each limit of a day, a four-hundredth of the
 * least budget, or as much as the largest call, where that is more.
 */
export function checkBlocks(
  ahead: Amounts,
  { rates, budgets }: GroupSettings,
  largest: Amounts,
): void {
  const { perHourUsd, perDayUsd, perMonthUsd } = budgets;
  const usd = Math.min(...[perHourUsd, perDayUsd, perMonthUsd].map((limit) => limit ?? Infinity));
  const parts: Amounts = {};
  for (const name of ['rpm', 'tpm', 'itpm', 'otpm'] as const) {
    if (rates[name] !== null) parts[name] = rates[name] / 60;
  }
  for (const name of ['rpd', 'tpd'] as const) {
    if (rates[name] !== null) parts[name] = rates[name] / 100;
  }
  if (usd !== Infinity) parts.usd = usd / 400;
  assert.deepEqual(Object.keys(ahead).toSorted(), Object.keys(parts).toSorted(), 'set aside');
  for (const [name, part] of Object.entries(parts)) {
    const amount = ahead[name as keyof Amounts] ?? 0;
    const most = Math.max(part, largest[name as keyof Amounts] ?? 0);
    const isBlock = amount > part - EPSILON && amount < most + EPSILON;
    assert.ok(isBlock, `${amount} of ${name} are set aside`);
  }
}
