import assert from 'node:assert/strict';
import type { Effect, GroupEvent } from '../../src/core/events.ts';
import type { GroupState } from '../../src/core/state.ts';

/**
 * The asks that are parked. Each must get exactly one answer, unless a newer ask of the same ticket takes
 * its place or the instance is lost; and nobody is answered who did not ask.
 */
export class AskLedger {
  readonly #parked = new Set<string>();
  #standing = new Set<string>();

  /** An event is about to happen. */
  expect(event: GroupEvent, state: GroupState): void {
    this.#standing = new Set(state.queue.byTicket.keys());
    if (event.kind === 'acquire') this.#parked.add(event.ticket.id);
    if (event.kind === 'resume') this.#parked.add(event.claim.ticketId);
  }

  /** The event has happened. */
  settle(effects: readonly Effect[], state: GroupState): void {
    for (const effect of effects) {
      if (!('ticketId' in effect)) continue;
      const { kind, ticketId } = effect;
      const isAnswered = this.#parked.delete(ticketId);
      // A ticket whose slice is over stands in the queue without an ask, and may end there.
      const endsInQueue =
        kind === 'reject' || kind === 'moved' || kind === 'gone' || kind === 'declined';
      const wasStanding = endsInQueue && this.#standing.delete(ticketId);
      assert.ok(isAnswered || wasStanding, `${kind} for ${ticketId}, which nobody waits for`);
    }
    const waiters = [...state.queue.byTicket.values()];
    const attached = waiters.filter(({ sliceEndsAt }) => sliceEndsAt !== null);
    const ids = attached.map(({ ticket }) => ticket.id);
    assert.deepEqual(new Set<string>(ids), this.#parked, 'parked asks and the queue differ');
  }

  /** The instance is lost, and every ask with it. */
  clear(): void {
    this.#parked.clear();
  }

  assertAllAnswered(): void {
    assert.deepEqual([...this.#parked], [], 'asks were never answered');
  }
}
