import { env } from 'cloudflare:workers';
import type { Env } from '../env.ts';
import { BODY_LIMITS, BodyBudget, bodyLimits } from '../upstream/body/body-budget.ts';
import { WaiterReturns } from './waiter-returns.ts';
import { Departures } from './departures.ts';
import { ModelLists } from './models/model-lists.ts';
import { RetryBudget } from './attempts/call-attempts.ts';

const { BODY_MEMORY_MIB: bodyMib } = env as Pick<Env, 'BODY_MEMORY_MIB'>;

/** The memory for bodies. All calls of an isolate share it. */
export const bodyBudget = new BodyBudget(
  bodyMib === undefined ? BODY_LIMITS : bodyLimits(Number(bodyMib)),
);

/** Callers that retry while it is unknown when the wait ends. */
export const returns = new WaiterReturns();

/** Callers that have left without a report from the runtime. */
export const departures = new Departures();

export const modelLists = new ModelLists();

const retryBudgets = new Map<string, RetryBudget>();

/** Retries are limited for each upstream separately. */
export function retryBudgetOf(upstreamId: string): RetryBudget {
  const budget = retryBudgets.get(upstreamId) ?? new RetryBudget();
  retryBudgets.set(upstreamId, budget);
  return budget;
}
