import type { UpstreamSignal } from '../core/words/signal.ts';
import { retryBudgetOf } from './isolate.ts';
import type { Candidate } from './plan.ts';
import type { Again } from './result.ts';
import type { Turn } from './tries.ts';

/** Decides where a call goes that its upstream did not serve; null: nowhere, its caller gets that answer. */
export function whereNext(
  { call: { body }, rules, located }: Candidate,
  { ticket, tries, hasNext, hasOtherPlace }: Turn,
  kind: UpstreamSignal['kind'],
): Again['where'] | null {
  const { max, budget, max_body_bytes: keptBytesMax } = rules.retries;
  // Its body must be there to be sent again. One may be kept for its tokens' sake alone, and too long.
  if (!body.isKept || (body.contentLength ?? 0) > keptBytesMax) return null;
  const elsewhere = hasNext ? 'elsewhere' : null;
  const mayWait = rules.mayWait && ticket.maxWaitMs !== 0;
  switch (kind) {
    case 'concurrency':
    case 'requests':
    case 'tokens':
    case 'ramp':
    case 'unknown':
      return mayWait && tries.mayReenter(kind) ? 'here' : elsewhere;
    case 'overload':
    case 'error': {
      const mayRetry = mayWait && tries.mayRetry(max, retryBudgetOf(located.upstream.id), budget);
      return mayRetry ? 'here later' : elsewhere;
    }
    case 'egress':
      return hasOtherPlace ? 'other place' : null;
    case 'quota':
    case 'long_window':
      return elsewhere;
    case 'never_fits':
    case 'served':
      return null;
  }
}
