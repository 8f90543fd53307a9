import { acquire, isTemporary } from './acquire.ts';
import { HeadgateError } from './errors.ts';
import type { Gate } from './gate.ts';
import { holdUntilRead, type ResultEnd, type HeldResult } from './held-results.ts';
import type { RenewedLease, Lease, Verdict } from './lease.ts';
import { isResponse, readAnswer } from './provider-answer.ts';
import type { LeaseRequest, Outcome } from './request.ts';
import { sleep, steadyNow } from './waits.ts';

/** The work under a lease. It is run once more where a provider refused it and Headgate says that this helps. */
export type Work<T> = (lease: Lease) => T | PromiseLike<T>;

/** A way to hold a lease until its result needs it no more. */
type HoldResult = <T>(result: T, ending: ResultEnd) => Promise<HeldResult<T>>;

/** Runs work under a lease, and releases it with the work's end, or with the end of what the work returned. */
export async function withLease<T>(
  gate: Gate,
  request: LeaseRequest,
  work: Work<T>,
  hold: HoldResult = holdUntilRead,
): Promise<HeldResult<T>> {
  const { signal, maxWaitMs } = request;
  const until = steadyNow() + (maxWaitMs ?? Infinity);
  let refused: RefusedAttempt<T> | null = null;
  for (;;) {
    const ticket = refused?.verdict.ticket ?? undefined;
    let lease: RenewedLease;
    try {
      lease = await acquire(gate, ticket === undefined ? request : { ...request, ticket });
    } catch (error) {
      // The provider's own refusal tells more than that there is no slot to try again.
      if (refused !== null && error instanceof HeadgateError && isTemporary(error)) {
        return refused.settle();
      }
      throw error;
    }
    const tried: TriedLease<T> = await attempt(lease, work, hold);
    if ('held' in tried) return tried.held;
    const { verdict } = tried;
    if (verdict.ticket === null || steadyNow() + verdict.afterMs > until) return tried.settle();
    await sleep(verdict.afterMs, signal);
    refused = tried;
  }
}

/** A try that the provider refused, and that is worth another one. */
interface RefusedAttempt<T> {
  readonly verdict: Verdict;
  /** Gives the refusal to the caller, if there is no other try. */
  readonly settle: () => HeldResult<T>;
}

type TriedLease<T> = RefusedAttempt<T> | { readonly held: HeldResult<T> };

async function attempt<T>(
  lease: RenewedLease,
  work: Work<T>,
  hold: HoldResult,
): Promise<TriedLease<T>> {
  try {
    return await run(lease, work, hold);
  } catch (error) {
    // Whatever has failed, be it in looking at a result or an error: nobody else would ever release it.
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

/** Asks Headgate about an error or a `Response`, where it is a provider's and nobody has asked yet. */
async function verdictOn(lease: RenewedLease, said: unknown): Promise<Verdict | null> {
  const { judged } = lease;
  if (judged !== null && judged.said === said) return judged.verdict;
  if (said instanceof HeadgateError || lease.signal.aborted) return null;
  // What is no provider's answer may be anything, a fault of the work among it.
  const answer = await readAnswer(said);
  return answer === null ? null : lease.reportAnswer(said, answer);
}

function raise(error: unknown): never {
  throw error;
}

function outcomeOf({ signal }: Lease): Outcome {
  return signal.aborted ? 'cancelled' : 'failed';
}

/** Says that the lease is gone where that is why the work broke off. */
function reported({ lost }: RenewedLease, error: unknown): unknown {
  if (lost === null || lost === error) return error;
  const { reason, message, status } = lost;
  return new HeadgateError(reason, message, {
    ...(status !== null && { status }),
    cause: error,
  });
}
