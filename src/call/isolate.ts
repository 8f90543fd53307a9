import { env } from 'cloudflare:workers';
import type { Env } from '../env.ts';
import { BODY_LIMITS, BodyBudget, bodyLimits } from '../upstream/body/body-budget.ts';
import { WaiterReturns } from './waiter-returns.ts';
import { Departures } from './departures.ts';
import { ModelLists } from './models/model-lists.ts';
import { RetryBudget } from './call-attempts.ts';

/** Things that all calls of an isolate share. */

const { BODY_MEMORY_MIB: bodyMib } = env as Pick<Env, 'BODY_MEMORY_MIB'>;

/** The room for bodies. */
export const bodyBudget = new BodyBudget(
  bodyMib === undefined ? BODY_LIMITS : bodyLimits(Number(bodyMib)),
);

/** Callers that come back to what nobody knows the end of. */
export const returns = new WaiterReturns();

/** Callers that have left though the runtime does not say so. */
export const departures = new Departures();

/** Lists of models that upstreams returned recently. */
export const modelLists = new ModelLists();

const retryBudgets = new Map<string, RetryBudget>();

/** Retries are bounded for each upstream by itself. */
export function retryBudgetOf(upstreamId: string): RetryBudget {
  const budget = retryBudgets.get(upstreamId) ?? new RetryBudget();
  retryBudgets.set(upstreamId, budget);
  return budget;
}
