import { poolName } from '../contract/pool-name.ts';
import { BoundedMap } from '../core/parts/bounded-map.ts';
import { steadyClock } from '../runtime/steady-clock.ts';
import { admit, type Admitted } from './acquire/admit.ts';
import type { AdmitContext } from './acquire/admit-one.ts';
import { tooManyBytes } from './many-keys.ts';
import { bodyBudget } from './isolate.ts';
import type { Candidate } from './plan.ts';
import type { CandidateAttempt } from './call-attempts.ts';
import { PlainAbort } from '../runtime/plain-abort.ts';

/** How long a call waits in any case: by then it is known that it does wait, and was not only long on its way. */
const ASKING_MS = 500;

/**
 * How long a call may wait for its slot with a body that there is no room to wait with. A small one stands in the way
 * of others that are to be read; a large one only while another large one comes, and it was long in coming itself.
 */
const SMALL_PATIENCE_MS = 2_000;
const LARGE_PATIENCE_MS = 30_000;

/** Maximum small ones that wait so: half of the room for those on their way, or more, is left to those that need not. */
const LINGERING_MAX = 16;

/** How often each of them looks whether there is room by now. */
const LOOK_MS = 250;
/** How long one counts without a look: then its request has died. */
const LOST_AFTER_MS = 2_000;

/**
 * How long a pool counts as one that keeps its calls waiting, once one of them was seen to: the next ones make room
 * at once, for calls of others.
 */
const SATURATED_MS = 2_000;
const SATURATED_MAX = 1_000;

/** When a call of each pool was last seen waiting, as far as this isolate knows. */
const seenWaitingAt = new BoundedMap<string, number>(SATURATED_MAX);

/** Small bodies that wait for their slots without room for that, and when each last looked. */
const lingering = new Map<BodyWaitTime, number>();

/**
 * Gets a call its slots, which it waits for with its body only where there is room for that. Nothing else is refused
 * for want of it: a call that need not wait is served whatever waits.
 */
export async function admitWithBody(
  { call, routed, placements }: Candidate,
  { ticket }: CandidateAttempt,
  context: AdmitContext,
): Promise<Admitted> {
  const { body } = call;
  const [narrowest] = placements;
  const pool = narrowest === undefined ? '' : poolName(narrowest.group, narrowest.partition);
  // One that does not want to wait is told at once, and needs no room for that.
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

/** The time that a call may wait with a body that there is no room to wait with, until there is. */
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
    if (!this.#mayGoOn(body.isSmall)) return this.over.abort();
    this.#callOff = after(LOOK_MS, () => this.#look());
  }

  #mayGoOn(isSmall: boolean): boolean {
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
