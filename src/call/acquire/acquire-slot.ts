import { steadyClock, type Schedule } from '../../runtime/clock.ts';
import type { Moved } from '../result.ts';
import type { Bypass } from './bypasses.ts';
import { OpenCalls } from './open-calls.ts';
import type { PoolSource } from './pools.ts';
import type { PositionListener } from './slices.ts';
import { SlotWait, type SlotEnd, type SlotRequest } from './slot-wait.ts';
import type { AbortSource } from '../../runtime/async.ts';

export interface WaitTerms {
  /** Aborts when the caller has left. */
  readonly signal: AbortSource;
  readonly after: Schedule;
  readonly listener: PositionListener | null;
  /** When the maximum wait ends, as far as the Worker knows. */
  readonly until: number;
  /** Lets the call bypass its group if that is allowed, or routes it again. null if neither applies now. */
  readonly bypass: () => Promise<Bypass | Moved | null>;
}

export type Acquired =
  | SlotEnd
  /** The object has been overloaded for so long that the call bypasses its group. */
  | { readonly kind: 'bypassed'; readonly by: Bypass };

/**
 * Acquires a slot, or asks until there is another definite answer. A parked call may never return if its object was
 * reset or it reached an old instance after a deploy. So a call is parked for one slice at most, and the next call
 * supersedes it a second before the slice ends. A deferred waiter is not parked and polls at the interval that it is
 * given.
 */
export async function acquireSlot(
  pool: PoolSource,
  request: SlotRequest,
  { signal, after, listener, until, bypass }: WaitTerms,
): Promise<Acquired> {
  const calls = new OpenCalls(pool, after, signal);
  const wait = new SlotWait(request, until, listener);
  let restMs = 0;
  while (!signal.aborted) {
    const turn = await (restMs > 0
      ? calls.rest(restMs)
      : calls.acquire(...wait.nextCall(steadyClock.now())));
    const next = wait.after(turn, steadyClock.now());
    if (next.kind === 'granted') return next;
    const by = 'mayBypass' in next && next.mayBypass ? await bypass() : null;
    if (by !== null) return calls.end(by.kind === 'moved' ? by : { kind: 'bypassed', by });
    if (next.kind !== 'again') return calls.end(next);
    ({ restMs } = next);
  }
  return calls.end({ kind: 'left' });
}
