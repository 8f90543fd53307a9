import { steadyClock } from '../../runtime/steady-clock.ts';
import type { Schedule } from '../../runtime/call-clock.ts';
import type { Moved } from '../result.ts';
import type { Bypass } from './bypasses.ts';
import { OpenCalls } from './open-calls.ts';
import type { PoolSource } from './pools.ts';
import type { PositionListener } from './slices.ts';
import { SlotWait, type SlotEnd, type SlotRequest } from './slot-wait.ts';
import type { AbortSource } from '../../runtime/plain-abort.ts';

/** How a call waits for its slot. */
export interface WaitTerms {
  /** Aborted when the caller has gone. */
  readonly signal: AbortSource;
  readonly after: Schedule;
  readonly listener: PositionListener | null;
  /** When it has waited for as long as it may, as far as is known here. */
  readonly until: number;
  /** Lets it bypass its group, where that is allowed, or has it decided anew; null: not now. */
  readonly bypass: () => Promise<Bypass | Moved | null>;
}

export type Acquired =
  | SlotEnd
  /** The object has been overloaded for so long that the call bypasses its group. */
  | { readonly kind: 'bypassed'; readonly by: Bypass };

/**
 * Acquires a slot, or asks until there is another definite answer. A call is parked for a slice at most, and a second
 * before its end the next one supersedes it: a call that is parked in an object that was reset, or in
 * an old instance after a deploy, may never come back, and must not take the caller with it. One that is far back is
 * not parked, and asks again when it is told to.
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
