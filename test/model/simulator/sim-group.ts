import assert from 'node:assert/strict';
import type { Effect, GroupEvent } from '../../../src/core/events.ts';
import { instant, leaseIdOf, type LeaseId } from '../../../src/core/words/ids.ts';
import { checkInvariants } from '../../../src/core/invariants.ts';
import { recover, emptyState } from '../../../src/core/recover.ts';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import type { LeaseOutcome } from '../../../src/core/words/outcome.ts';
import type { GroupState, ActiveLease } from '../../../src/core/state.ts';
import { nextWakeAt, step } from '../../../src/core/step.ts';
import type { Ticket } from '../../../src/core/words/ticket.ts';
import { endGapMs } from '../../../src/core/estimate.ts';
import { slotsHeld } from '../../../src/core/stats.ts';
import { confirmWrite, takeWrite } from '../../../src/core/writes.ts';
import { emptyControls } from '../../../src/core/member.ts';
import type { Claim } from '../../../src/core/orphaned.ts';
import { answersOf, someSettings, START } from '../../support/core-builders.ts';
import { Disk } from '../disk.ts';
import { NaiveGroup } from '../naive-group.ts';
import type { Clock } from './clock.ts';

/** The answer to a caller. `lost`: the instance was replaced, and its ask went with it. */
export type SimGroupAnswer =
  | { readonly kind: 'granted'; readonly leaseId: LeaseId; readonly endGapMs: number }
  | { readonly kind: 'declined'; readonly waitMs: number | null }
  | { readonly kind: 'refused' | 'lost' };

type Hear = (answer: SimGroupAnswer) => void;

/** A write that nobody waits for is issued within this. */
const WRITE_DELAY_MS = 50;

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
  onGrant: (lease: ActiveLease, state: GroupState) => void = () => {};
  #state: GroupState;
  #instances = 1;
  readonly #clock: Clock;
  readonly #delayMs: () => number;
  readonly #parked = new Map<string, Hear>();
  /** Answers that wait for a write. */
  readonly #behind = new Set<(isLost: boolean) => void>();
  /** Leases as their holders know them. */
  readonly #known = new Map<LeaseId, Pick<ActiveLease, 'attachment' | 'nested' | 'grantedAt'>>();
  readonly #disk = new Disk();
  readonly #writeMs: (() => number) | null;
  /** Handles the same events, and must answer the same. */
  #twin: NaiveGroup | null = null;
  #wakesAt = Infinity;
  #countedAt = 0;

  /**
   * @param delayMs how long a message takes, one way
   * @param writeMs how long a write takes to arrive; null: nothing is stored
   */
  constructor(
    clock: Clock,
    name: string,
    settings: Partial<GroupSettings>,
    delayMs: () => number = () => 0,
    writeMs: (() => number) | null = null,
  ) {
    this.name = name;
    this.#clock = clock;
    this.#delayMs = delayMs;
    this.#writeMs = writeMs;
    const patient = { timeoutMs: 1e9, queueLengthMax: 5_000 };
    const own = someSettings({ ...patient, ...settings });
    this.#state = emptyState(own, 1, emptyControls(instant(START)), writeMs !== null);
  }

  get state(): GroupState {
    return this.#state;
  }

  /** Compares every answer with that of a naive group from now on, before the first event of a group that stores nothing. */
  compare(): this {
    this.#twin = new NaiveGroup(this.#state.settings, false, this.#now());
    return this;
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

  /** A holder gives its lease back, by its id where another instance has granted it. */
  release(ticket: Ticket, leaseId: LeaseId, outcome: LeaseOutcome): void {
    this.#deliver(() => {
      const claim = this.#claimOf(ticket, leaseId);
      this.#step({ kind: 'release', leaseId, outcome, settlement: null, claim });
    });
  }

  /** A holder shows that it lives; if its lease was lost, it takes it up again. */
  renew(ticket: Ticket, leaseId: LeaseId): void {
    this.#deliver(() => {
      if (this.#state.leases.has(leaseId)) this.#step({ kind: 'renew', leaseId });
      else this.#step({ kind: 'resume', claim: this.#claimOf(ticket, leaseId) });
    });
  }

  #claimOf({ id: ticketId, holder, lane, slots }: Ticket, leaseId: LeaseId): Claim {
    const known = this.#known.get(leaseId);
    const { attachment = null, nested = null, grantedAt = this.#now() } = known ?? {};
    const heldMs = this.#now() - grantedAt;
    const reported = { ticketId, holder, lane, slots, attachment, nested, heirOf: [], heldMs };
    return { leaseId, hasLapsed: false, reserved: null, ...reported };
  }

  reconfigure(changes: Partial<GroupSettings>): void {
    this.#step({ kind: 'reconfigure', settings: { ...this.#state.settings, ...changes } });
  }

  /** Replaces the instance. Every ask is lost, and every answer behind a write that has not arrived. */
  reset(): void {
    const { settings } = this.#state;
    this.#disk.lose(Infinity);
    const first = 1_000_000 * this.#instances++;
    this.#state = recover(settings, this.#disk.read(), first, this.#writeMs !== null, this.#now());
    const [parked, behind] = [[...this.#parked.values()], [...this.#behind]];
    this.#parked.clear();
    this.#behind.clear();
    for (const hear of parked) this.#deliver(() => hear({ kind: 'lost' }));
    for (const hear of behind) hear(true);
    if (slotsHeld(this.#state) > 0) this.#write();
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
    const answers = this.#twin?.handle(event, this.#now());
    if (answers !== undefined) assert.deepEqual(answersOf(effects), answers, this.name);
    for (const effect of effects) this.#report(effect);
    const writes = effects.filter((effect) => effect.kind === 'write');
    if (this.#behind.size > 0 || writes.some(({ isAhead }) => isAhead)) this.#write();
    else if (writes.length > 0) this.#clock.after(WRITE_DELAY_MS, () => this.#write());
    this.#plan();
  }

  /** Writes what there is; answers that wait for it are heard when it has arrived. */
  #write(): void {
    if (this.#writeMs === null) return;
    const state = this.#state;
    this.#disk.lagMs = this.#writeMs();
    const write = takeWrite(state, this.#now());
    this.#disk.send(write, this.#now());
    const { seq } = write.bound;
    const waiting = [...this.#behind];
    const arrive = (): void => {
      if (this.#state !== state) return;
      while (this.#disk.seq < seq) confirmWrite(state, this.#disk.arrive() ?? seq);
      for (const hear of waiting) if (this.#behind.delete(hear)) hear(false);
    };
    this.#clock.at(this.#disk.lastArrivalAt - START, arrive);
  }

  #report(effect: Effect): void {
    if (effect.kind === 'grant') {
      this.onGrant(effect.lease, this.#state);
      const { id, lane, holder, attachment, nested, grantedAt } = effect.lease;
      this.#known.set(id, { attachment, nested, grantedAt });
      for (const key of [lane, holder.tenant]) {
        this.grants.set(key, (this.grants.get(key) ?? 0) + 1);
      }
    }
    const answer = answerOf(effect, endGapMs(this.#state));
    if (answer === null || !('ticketId' in effect)) return;
    const hear = this.#parked.get(effect.ticketId);
    this.#parked.delete(effect.ticketId);
    if (hear === undefined) return;
    if (effect.kind !== 'grant' || effect.isCovered) return this.#deliver(() => hear(answer));
    const lost: SimGroupAnswer = { kind: 'lost' };
    this.#behind.add((isLost) => this.#deliver(() => hear(isLost ? lost : answer)));
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

function answerOf(effect: Effect, gapMs: number): SimGroupAnswer | null {
  switch (effect.kind) {
    case 'grant':
      return { kind: 'granted', leaseId: effect.lease.id, endGapMs: gapMs };
    case 'declined':
      return { kind: 'declined', waitMs: effect.waitMs };
    case 'reject':
    case 'gone':
    case 'moved':
    case 'unread':
      return { kind: 'refused' };
    case 'pending':
      return { kind: 'lost' };
    case 'write':
    case 'recalled':
    case 'revoked':
    case 'ended':
      return null;
  }
}
