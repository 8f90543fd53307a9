import { acquire, isTemporary } from './acquire.ts';
import { HeadgateError } from './errors.ts';
import type { Gate } from './gate.ts';
import { holdUntilRead, type ResultEnd, type HeldResult } from './held-results.ts';
import type { RenewedLease, Lease, Verdict } from './lease.ts';
import { isResponse, readAnswer } from './provider-answer.ts';
import type { LeaseRequest, Outcome } from './request.ts';
import { sleep, steadyNow } from './waits.ts';

/** Work under a lease. It runs again if the provider rejects it and Headgate schedules a retry. */
export type Work<T> = (lease: Lease) => T | PromiseLike<T>;

/** Holds a lease until the result is complete. */
type HoldResult = <T>(result: T, ending: ResultEnd) => Promise<HeldResult<T>>;

/** Runs work under a lease and releases the lease when the work, or the result that it streams, has ended. */
export async function withLease<T>(
  gate: Gate,
  request: LeaseRequest,
  work: Work<T>,
  hold: HoldResult = holdUntilRead,
): Promise<HeldResult<T>> {
  const { signal, maxWaitMs } = request;
  const until = steadyNow() + (maxWaitMs ?? Infinity);
  let rejected: RejectedAttempt<T> | null = null;
  for (;;) {
    const ticket = rejected?.verdict.ticket ?? undefined;
    let lease: RenewedLease;
    try {
      lease = await acquire(gate, ticket === undefined ? request : { ...request, ticket });
    } catch (error) {
      // The provider's rejection is more informative than the lack of a slot for a retry.
      if (rejected !== null && error instanceof HeadgateError && isTemporary(error)) {
        return rejected.settle();
      }
      throw error;
    }
    const tried: TriedLease<T> = await attempt(lease, work, hold);
    if ('held' in tried) return tried.held;
    const { verdict } = tried;
    if (verdict.ticket === null || steadyNow() + verdict.afterMs > until) return tried.settle();
    await sleep(verdict.afterMs, signal);
    rejected = tried;
  }
}

/** An attempt that the provider rejected and that may be retried. */
interface RejectedAttempt<T> {
  readonly verdict: Verdict;
  /** Returns or throws the provider's rejection, if there is no further attempt. */
  readonly settle: () => HeldResult<T>;
}

type TriedLease<T> = RejectedAttempt<T> | { readonly held: HeldResult<T> };

async function attempt<T>(
  lease: RenewedLease,
  work: Work<T>,
  hold: HoldResult,
): Promise<TriedLease<T>> {
  try {
    return await run(lease, work, hold);
  } catch (error) {
    // The lease must be released here after any failure, including one while inspecting the result or the error.
    await lease.release(outcomeOf(lease));
    throw error;
  }
}

async function run<T>(
  lease: RenewedLease,
  work: Work<T>,
  hold: HoldResult,
): Promise<TriedLease<T>> {
  let result: T;
  try {
    result = await work(lease);
  } catch (error) {
    const verdict = await verdictOn(lease, error);
    if (verdict?.action === 'again') return { verdict, settle: () => raise(error) };
    throw reported(lease, error);
  }
  const verdict = isResponse(result) && !result.ok ? await verdictOn(lease, result) : null;
  if (verdict?.action === 'again') return { verdict, settle: () => result as HeldResult<T> };
  const end = async (outcome: Outcome, error?: unknown): Promise<void> => {
    if (error !== undefined) await verdictOn(lease, error);
    await lease.release(outcome);
  };
  return { held: await hold(result, { signal: lease.signal, stop: () => lease.stopWork(), end }) };
}

/** Reports an error or a `Response` to Headgate, unless it is not a provider's or was already reported. */
async function verdictOn(lease: RenewedLease, result: unknown): Promise<Verdict | null> {
  const { judged } = lease;
  if (judged !== null && judged.answer === result) return judged.verdict;
  if (result instanceof HeadgateError || lease.signal.aborted) return null;
  // Anything else may be a fault of the work itself, and is not reported.
  const answer = await readAnswer(result);
  return answer === null ? null : lease.reportAnswer(result, answer);
}

function raise(error: unknown): never {
  throw error;
}

function outcomeOf({ signal }: Lease): Outcome {
  return signal.aborted ? 'cancelled' : 'failed';
}

/** Returns the loss of the lease instead of the error that it caused in the work. */
function reported({ lost }: RenewedLease, error: unknown): unknown {
  if (lost === null || lost === error) return error;
  const { reason, message, status } = lost;
  return new HeadgateError(reason, message, {
    ...(status !== null && { status }),
    cause: error,
  });
}
