import { createBodyBudget } from '../upstream/body-budget.ts';
import { RetryBudget } from './tries.ts';

/** What all calls of an isolate share. */

/** What every isolate may hold of bodies at a time. */
export const bodyBudget = createBodyBudget();

const retryBudgets = new Map<string, RetryBudget>();

/** Retries are bounded for each upstream by itself. */
export function retryBudgetOf(upstreamId: string): RetryBudget {
  const budget = retryBudgets.get(upstreamId) ?? new RetryBudget();
  retryBudgets.set(upstreamId, budget);
  return budget;
}
