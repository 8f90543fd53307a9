import type { Raised } from '../../contract/warnings.ts';
import type { Period } from '../../core/parts/spend.ts';
import { dollars } from '../../core/words/figures.ts';
import { IMPLICIT, type InstantMs, type MemberId } from '../../core/words/ids.ts';

/** The state of a budget in its present period. */
interface BudgetUsed {
  /** Whose budget it is; the implicit one: the whole pool's. */
  readonly member: MemberId;
  readonly period: Period;
  readonly spentUsd: number;
  readonly ofUsd: number;
  readonly endsAt: InstantMs;
}

/** The state of a limit of requests or tokens a day. */
interface DayUsed {
  readonly member: MemberId;
  readonly of: 'requests' | 'tokens';
  readonly used: number;
  readonly limit: number;
  /** When the oldest of what was used counts no longer. */
  readonly leavesAt: InstantMs;
}

/** Says that a part of a budget is spent. */
export function budgetNear(used: BudgetUsed, percent: number): Raised {
  const message = `${percent} % of ${nameOf(used)} is spent: ${amounts(used)}, until ${timeOf(used.endsAt)}.`;
  return { kind: 'budget_near', ...about(used), message, figures: figuresOf(used, percent) };
}

/** Says that a budget is spent. */
export function budgetSpent(used: BudgetUsed, isDryRun: boolean): Raised {
  const calls = isDryRun ? 'Calls would be refused' : 'Calls are refused';
  const message = `All of ${nameOf(used)} is spent: ${amounts(used)}. ${calls} until ${timeOf(used.endsAt)}.`;
  return { kind: 'budget_spent', ...about(used), message, figures: figuresOf(used, 100) };
}

/** Says that a call did not fit into what is left of a budget. */
export function budgetRefused(used: BudgetUsed, reservedUsd: number): Raised {
  const { spentUsd, ofUsd, endsAt } = used;
  const aside = reservedUsd > 0 ? ` and ${dollars(reservedUsd)} set aside for calls in flight` : '';
  const message = `A call did not fit into ${nameOf(used)} and was refused: ${spentOf(used)}${aside}. More like it are refused until ${timeOf(endsAt)}.`;
  const percent = ofUsd === 0 ? 100 : Math.floor((spentUsd / ofUsd) * 100);
  const figures = { ...figuresOf(used, percent), reserved_usd: reservedUsd };
  return { kind: 'budget_spent', ...about(used), message, figures };
}

/** Says that a part of a limit of a day is used. */
export function dayNear(used: DayUsed, percent: number): Raised {
  const message = `${percent} % of ${dayName(used)} is used: ${dayAmounts(used)}. The first of them count until ${timeOf(used.leavesAt)}.`;
  return { kind: 'day_limit_near', ...about(used), message, figures: dayFigures(used, percent) };
}

/** Says that a limit of a day is used up. */
export function daySpent(used: DayUsed): Raised {
  const message = `All of ${dayName(used)} is used: ${dayAmounts(used)}. Calls wait until the first of them count no longer, from ${timeOf(used.leavesAt)} on.`;
  return { kind: 'day_limit_spent', ...about(used), message, figures: dayFigures(used, 100) };
}

function about({ member }: { readonly member: MemberId }): Pick<Raised, 'member'> {
  return member === IMPLICIT ? {} : { member };
}

function ofMember({ member }: { readonly member: MemberId }): string {
  return member === IMPLICIT ? '' : ` of the member ${member}`;
}

function nameOf(used: BudgetUsed): string {
  return `the budget of the ${used.period}${ofMember(used)}`;
}

function amounts({ spentUsd, ofUsd }: BudgetUsed): string {
  return `${dollars(spentUsd)} of ${dollars(ofUsd)}`;
}

/** The spent part. An amount of 0 says less than that nothing is spent. */
function spentOf(used: BudgetUsed): string {
  const { spentUsd, ofUsd } = used;
  return spentUsd === 0 ? `nothing of ${dollars(ofUsd)} is spent` : `${amounts(used)} is spent`;
}

function figuresOf({ spentUsd, ofUsd, endsAt }: BudgetUsed, percent: number): Raised['figures'] {
  return { percent, spent_usd: spentUsd, budget_usd: ofUsd, until_ms: endsAt };
}

function dayName(used: DayUsed): string {
  return `the ${used.of} of 24 hours${ofMember(used)}`;
}

function dayAmounts({ used, limit }: DayUsed): string {
  return `${Math.round(used).toLocaleString('en')} of ${limit.toLocaleString('en')}`;
}

function dayFigures({ used, limit, leavesAt }: DayUsed, percent: number): Raised['figures'] {
  return { percent, used: Math.round(used), limit, until_ms: leavesAt };
}

function timeOf(at: InstantMs): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
