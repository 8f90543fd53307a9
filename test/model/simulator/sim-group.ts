import assert from 'node:assert/strict';
import type { Effect, GroupEvent } from '../../../src/core/events.ts';
import { instant, leaseIdOf, type LeaseId } from '../../../src/core/words/ids.ts';
import { checkInvariants } from '../../../src/core/invariants.ts';
import { recover } from '../../../src/core/recover.ts';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import { emptyState, type GroupState, type Lease } from '../../../src/core/state.ts';
import { nextWakeAt, step } from '../../../src/core/step.ts';
import type { Ticket } from '../../../src/core/words/ticket.ts';
import { rowOf } from '../../../src/core/recover.ts';
import { keptControls, someSettings, START } from '../../support/core-builders.ts';
import type { Clock } from './clock.ts';

/** The answer to a caller. `lost`: the instance was replaced, and its ask went with it. */
export type Answer =
  | { readonly kind: 'granted'; readonly leaseId: LeaseId }
  | { readonly kind: 'declined'; readonly isPaused: boolean }
  | { readonly kind: 'refused' | 'lost' };

type Hear = (answer: Answer) => void;

/** The real core behind a network, with an upstream that counts. */
export class SimGroup {
  readonly name: string;
  /** How often each tenant and each lane was granted. */
  readonly grants = new Map<string, number>();
  /** Calls that run at the upstream, in slots, now and at the most. */
  running = 0;
  peak = 0;
  /** Slot-milliseconds that calls ran. */
  busyMs = 0;
  /** Called at every grant, with the state as it was before. */
  onGrant: (lease: Lease, state: GroupState) => void = () => {};
  #state: GroupState;
  #instances = 1;
  readonly #clock: Clock;
  readonly #delayMs: () => number;
  readonly #parked = new Map<string, Hear>();
  #wakesAt = Infinity;
  #countedAt = 0;

  /** @param delayMs how long a message takes, one way */
  constructor(
    clock: Clock,
    name: string,
    settings: Partial<GroupSettings>,
    delayMs: () => number = () => 0,
  ) {
    this.name = name;
    this.#clock = clock;
    this.#delayMs = delayMs;
    const patient = { timeoutMs: 1e9, queueLengthMax: 5_000 };
    this.#state = emptyState(someSettings({ ...patient, ...settings }), 1);
  }

  get state(): GroupState {
    return this.#state;
  }

  /** Asks for slots; whoever asks again for the same ticket is heard in place of the earlier ask. */
  ask(ticket: Ticket, attempt: number, sliceMs: number, hear: Hear): void {
    const event = { kind: 'acquire', ticket, leaseId: leaseIdOf(ticket.id, attempt), sliceMs };
    this.#deliver(() => {
      this.#parked.set(ticket.id, hear);
      this.#step(event as GroupEvent);
    });
  }

  send(event: GroupEvent): void {
    this.#deliver(() => this.#step(event));
  }

  /** A holder shows that it lives; if its lease was lost, it takes it up again. */
  renew(ticket: Ticket, leaseId: LeaseId): void {
    const { id, holder, lane, slots } = ticket;
    this.#deliver(() => {
      if (this.#state.leases.has(leaseId)) this.#step({ kind: 'renew', leaseId });
      else this.#step({ kind: 'resume', leaseId, ticketId: id, holder, lane, slots });
    });
  }

  reconfigure(changes: Partial<GroupSettings>): void {
    this.#step({ kind: 'reconfigure', settings: { ...this.#state.settings, ...changes } });
  }

  /** Replaces the instance. Every lease was written, every ask is lost. */
  reset(): void {
    const rows = [...this.#state.leases.values()].map(rowOf);
    const attachments = 1_000_000 * this.#instances++;
    const { settings } = this.#state;
    this.#state = recover(
      settings,
      rows,
      keptControls(this.#state),
      attachments,
      this.#now(),
    ).state;
    const lost = [...this.#parked.values()];
    this.#parked.clear();
    for (const hear of lost) this.#deliver(() => hear({ kind: 'lost' }));
    this.#plan();
  }

  /** A call begins at the upstream, or ends there with a negative number of slots. */
  run(slots: number): void {
    this.busyMs += this.running * (this.#clock.now - this.#countedAt);
    this.#countedAt = this.#clock.now;
    this.running += slots;
    this.peak = Math.max(this.peak, this.running);
  }

  #now() {
    return instant(START + this.#clock.now);
  }

  #deliver(work: () => void): void {
    const delayMs = this.#delayMs();
    if (delayMs === 0) work();
    else this.#clock.after(delayMs, work);
  }

  #step(event: GroupEvent): void {
    const effects = step(this.#state, event, this.#now());
    for (const effect of effects) this.#tell(effect);
    this.#plan();
  }

  #tell(effect: Effect): void {
    if (effect.kind === 'grant') {
      this.onGrant(effect.lease, this.#state);
      const { lane, holder } = effect.lease;
      for (const key of [lane, holder.tenant]) {
        this.grants.set(key, (this.grants.get(key) ?? 0) + 1);
      }
    }
    const answer = answerOf(effect);
    if (answer === null || !('ticketId' in effect)) return;
    const hear = this.#parked.get(effect.ticketId);
    this.#parked.delete(effect.ticketId);
    if (hear !== undefined) this.#deliver(() => hear(answer));
  }

  /** Wakes the group when it wants to be woken; too early does no harm. */
  #plan(): void {
    const wakeAt = nextWakeAt(this.#state, this.#now()) - START;
    if (wakeAt >= this.#wakesAt || wakeAt === Infinity) return;
    this.#wakesAt = wakeAt;
    this.#clock.at(wakeAt, () => {
      if (this.#wakesAt !== wakeAt) return;
      this.#wakesAt = Infinity;
      this.#step({ kind: 'tick' });
    });
  }

  /** Nothing waits, holds or runs here any more. */
  assertAtRest(): void {
    assert.deepEqual(checkInvariants(this.#state, this.#now()), []);
    assert.equal(this.#state.leases.size, 0, `${this.name} has leases`);
    assert.equal(this.#state.queue.byTicket.size, 0, `${this.name} has waiters`);
    assert.equal(this.running, 0, `${this.name} still runs calls`);
  }
}

function answerOf(effect: Effect): Answer | null {
  switch (effect.kind) {
    case 'grant':
      return { kind: 'granted', leaseId: effect.lease.id };
    case 'declined':
      return { kind: 'declined', isPaused: effect.isPaused };
    case 'reject':
    case 'gone':
    case 'moved':
      return { kind: 'refused' };
    case 'pending':
      return { kind: 'lost' };
    case 'save':
    case 'drop':
    case 'keep':
    case 'revoked':
    case 'ended':
      return null;
  }
}
