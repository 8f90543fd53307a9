import { poolName } from '../contract/pool-name.ts';
import { BoundedMap } from '../core/parts/bounded-map.ts';
import { steadyClock } from '../runtime/clock.ts';
import { admit, type Admitted } from './acquire/admit.ts';
import type { AdmitContext } from './acquire/admit-one.ts';
import { tooManyBytes } from './many-keys.ts';
import { bodyBudget } from './isolate.ts';
import type { Candidate } from './plan.ts';
import type { CandidateAttempt } from './attempts/call-attempts.ts';
import { PlainAbort } from '../runtime/async.ts';

/** Minimum time that a call may wait. After it the call is certainly queued, and not only delayed by the network. */
const ASKING_MS = 500;

/**
 * How long a call may queue if there is no room for its body. A small body takes room from other bodies that have to be
 * read. A large one only does so while another large one arrives, and it took long to arrive itself.
 */
const SMALL_PATIENCE_MS = 2_000;
const LARGE_PATIENCE_MS = 30_000;

/**
 * Maximum small bodies that wait without room. At least half of the room for in-transit bodies stays free for calls
 * that do not queue.
 */
const LINGERING_MAX = 16;

/** How often each of them checks whether there is room. */
const LOOK_MS = 250;
/** How long one counts without such a check. After that its request has died. */
const LOST_AFTER_MS = 2_000;

/**
 * How long a pool counts as saturated after one of its calls was seen to queue. The next ones are rejected immediately,
 * to leave room for calls of other pools.
 */
const SATURATED_MS = 2_000;
const SATURATED_MAX = 1_000;

/** When a call of each pool was last seen to queue, as far as this isolate knows. */
const seenWaitingAt = new BoundedMap<string, number>(SATURATED_MAX);

/** Small bodies that queue without room, and when each last checked for it. */
const lingering = new Map<BodyWaitTime, number>();

/**
 * Acquires the slots of a call. It queues with its body only if there is room. Lack of room rejects nothing else: a
 * call that need not queue is served in any case.
 */
export async function admitWithBody(
  { call, routed, placements }: Candidate,
  { ticket }: Pick<CandidateAttempt, 'ticket'>,
  context: AdmitContext,
): Promise<Admitted> {
  const { body } = call;
  const [narrowest] = placements;
  const pool = narrowest === undefined ? '' : poolName(narrowest.group, narrowest.partition);
  // A call that does not allow queueing is decided immediately and needs no room.
  if (ticket.maxWaitMs === 0 || body.rest(pool)) {
    const admitted = await admit(routed, ticket, placements, context);
    body.move();
    return admitted;
  }
  if (body.isSmall && isSaturated(pool)) return tooManyBytes();
  const patience = new BodyWaitTime(call, pool);
  const signal = new PlainAbort(context.signal, patience.over);
  const admitted = await admit(routed, ticket, placements, { ...context, signal });
  patience.end();
  body.move();
  return admitted.kind === 'left' && patience.over.aborted ? tooManyBytes() : admitted;
}

function isSaturated(pool: string): boolean {
  return steadyClock.now() - (seenWaitingAt.get(pool) ?? -Infinity) < SATURATED_MS;
}

/** How long a call may queue with a body for which there is no room. */
class BodyWaitTime {
  readonly #call: Candidate['call'];
  readonly #pool: string;
  readonly #since = steadyClock.now();
  readonly over = new PlainAbort();
  #callOff: () => void;

  constructor(call: Candidate['call'], pool: string) {
    this.#call = call;
    this.#pool = pool;
    this.#callOff = call.after(LOOK_MS, () => this.#look());
  }

  end(): void {
    this.#callOff();
    lingering.delete(this);
  }

  #look(): void {
    const { body, after } = this.#call;
    if (body.rest(this.#pool)) return this.end();
    if (!this.#mayKeepWaiting(body.isSmall)) return this.over.abort();
    this.#callOff = after(LOOK_MS, () => this.#look());
  }

  #mayKeepWaiting(isSmall: boolean): boolean {
    const now = steadyClock.now();
    const waitedMs = now - this.#since;
    if (waitedMs < ASKING_MS) return true;
    seenWaitingAt.set(this.#pool, now);
    if (!isSmall) return waitedMs < LARGE_PATIENCE_MS || !bodyBudget.isLargeWaiting;
    for (const [one, seenAt] of lingering) {
      if (now - seenAt > LOST_AFTER_MS) lingering.delete(one);
    }
    const hasPlace = lingering.has(this) || lingering.size < LINGERING_MAX;
    if (hasPlace) lingering.set(this, now);
    return hasPlace && waitedMs < SMALL_PATIENCE_MS;
  }
}
