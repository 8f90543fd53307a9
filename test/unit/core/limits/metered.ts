import type {
  BudgetSettings,
  RateSettings,
  GroupSettings,
} from '../../../../src/core/words/settings.ts';
import { leaseIdOf, ticketId } from '../../../../src/core/words/ids.ts';
import { leftOf } from '../../../../src/core/parts/rates.ts';
import type { Ticket, Settlement } from '../../../../src/core/words/ticket.ts';
import { someTicket, TestGroup, UNMETERED } from '../../../support/core-builders.ts';

/** Limits besides slots, and whatever else a test says. */
type LimitsMeteredLimits = Partial<RateSettings> & Partial<BudgetSettings>;

/** Ten slots under these limits, of which a whole minute may go at once unless a test says otherwise. */
export function metered(
  limits: LimitsMeteredLimits,
  settings: Partial<GroupSettings> = {},
): TestGroup {
  const { perHourUsd = null, perDayUsd = null, perMonthUsd = null, ...rates } = limits;
  return TestGroup.stored({
    slotsMax: 10,
    isMetered: true,
    rates: { ...UNMETERED.rates, burstMs: 60_000, ...rates },
    budgets: { perHourUsd, perDayUsd, perMonthUsd },
    ...settings,
  });
}

/** The expected use of a call. */
export interface MeteredSize {
  readonly input?: number;
  readonly output?: number;
  readonly usd?: number;
}

/** Asks for a call of that size, which reserves all its output. */
export function call(
  group: TestGroup,
  name: string,
  size: MeteredSize = {},
  changes: Partial<Ticket> = {},
): string[] {
  const { input = 1, output = 0, usd = null } = size;
  const price = usd === null ? null : { input: usd / input, output: 0 };
  const estimate = {
    inputTokens: input,
    maxOutputTokens: output,
    reserve: 'max_tokens',
    price,
  } as const;
  const ticket = someTicket(name, group.now, { estimate, ...changes });
  const leaseId = leaseIdOf(ticketId(name), 1);
  return group.send({ kind: 'acquire', ticket, leaseId, sliceMs: 600_000 });
}

/** Makes the upstream's count of a call. */
export function used(size: MeteredSize, requests = 1): Settlement {
  const { input: inputTokens = 0, output: outputTokens = 0, usd = 0 } = size;
  return { requests, inputTokens, outputTokens, usd, seen: null };
}

/** Shows what a group has left of its limits, and what it has set aside. */
export function leftIn({ state, now }: TestGroup): Record<string, number> {
  const { controls, settings, slotsInUse } = state;
  const left = leftOf(controls.rates, settings.rates, now);
  const rounded = Object.entries(left).map(([name, amount]) => [name, Number(amount.toFixed(6))]);
  const { reservedUsd, total } = controls.spend;
  const spentUsd = total.usd.month;
  return { ...Object.fromEntries(rounded), slotsInUse, reservedUsd, spentUsd };
}
