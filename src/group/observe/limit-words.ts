import type { Raised } from '../../contract/warnings.ts';
import type { Period } from '../../core/parts/spend.ts';
import { dollars } from '../../core/words/figures.ts';
import { IMPLICIT, type InstantMs, type MemberId } from '../../core/words/ids.ts';

interface BudgetUsed {
  /** The member with the budget. The implicit member stands for the whole pool. */
  readonly member: MemberId;
  readonly period: Period;
  readonly spentUsd: number;
  readonly ofUsd: number;
  readonly endsAt: InstantMs;
}

/** The state of a daily limit of requests or tokens. */
interface DayUsed {
  readonly member: MemberId;
  readonly of: 'requests' | 'tokens';
  readonly used: number;
  readonly limit: number;
  /** When the oldest usage stops counting. */
  readonly leavesAt: InstantMs;
}

export function budgetNear(used: BudgetUsed, percent: number): Raised {
  const message = `${percent} % of ${nameOf(used)} is spent (${amounts(used)}). It resets at ${timeOf(used.endsAt)}.`;
  return { kind: 'budget_near', ...about(used), message, figures: figuresOf(used, percent) };
}

export function budgetSpent(used: BudgetUsed, isDryRun: boolean): Raised {
  const calls = isDryRun ? 'Calls would be rejected' : 'Calls are rejected';
  const message = `All of ${nameOf(used)} is spent (${amounts(used)}). ${calls} until ${timeOf(used.endsAt)}.`;
  return { kind: 'budget_spent', ...about(used), message, figures: figuresOf(used, 100) };
}

/** Warns that a call did not fit into the rest of a budget. */
export function budgetRefused(used: BudgetUsed, reservedUsd: number): Raised {
  const { spentUsd, ofUsd, endsAt } = used;
  const reserved =
    reservedUsd > 0 ? `, and ${dollars(reservedUsd)} is reserved for calls in flight` : '';
  const message = `A call did not fit into ${nameOf(used)} and was rejected: ${spentOf(used)}${reserved}. Similar calls are rejected until ${timeOf(endsAt)}.`;
  const percent = ofUsd === 0 ? 100 : Math.floor((spentUsd / ofUsd) * 100);
  const figures = { ...figuresOf(used, percent), reserved_usd: reservedUsd };
  return { kind: 'budget_spent', ...about(used), message, figures };
}

export function dayNear(used: DayUsed, percent: number): Raised {
  const message = `${percent} % of ${dayName(used)} is used (${dayAmounts(used)}). The oldest ${used.of} stop counting at ${timeOf(used.leavesAt)}.`;
  return { kind: 'day_limit_near', ...about(used), message, figures: dayFigures(used, percent) };
}

export function daySpent(used: DayUsed): Raised {
  const message = `All of ${dayName(used)} is used (${dayAmounts(used)}). Calls are queued until the oldest ${used.of} stop counting, from ${timeOf(used.leavesAt)} on.`;
  return { kind: 'day_limit_spent', ...about(used), message, figures: dayFigures(used, 100) };
}

function about({ member }: { readonly member: MemberId }): Pick<Raised, 'member'> {
  return member === IMPLICIT ? {} : { member };
}

function ofMember({ member }: { readonly member: MemberId }): string {
  return member === IMPLICIT ? '' : ` of member \`${member}\``;
}

function nameOf(used: BudgetUsed): string {
  return `the budget for this ${used.period}${ofMember(used)}`;
}

function amounts({ spentUsd, ofUsd }: BudgetUsed): string {
  return `${dollars(spentUsd)} of ${dollars(ofUsd)}`;
}

/** Describes the spent part. "None" is clearer than an amount of $0. */
function spentOf(used: BudgetUsed): string {
  const { spentUsd, ofUsd } = used;
  return spentUsd === 0 ? `none of ${dollars(ofUsd)} is spent` : `${amounts(used)} is spent`;
}

function figuresOf({ spentUsd, ofUsd, endsAt }: BudgetUsed, percent: number): Raised['figures'] {
  return { percent, spent_usd: spentUsd, budget_usd: ofUsd, until_ms: endsAt };
}

function dayName(used: DayUsed): string {
  return `the 24-hour limit of ${used.of}${ofMember(used)}`;
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
