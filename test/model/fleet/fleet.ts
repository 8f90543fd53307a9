import assert from 'node:assert/strict';
import type { Waiter } from '../../../src/core/parts/queue.ts';
import { recover } from '../../../src/core/recover.ts';
import type { GroupState } from '../../../src/core/state.ts';
import {
  IMPLICIT,
  instant,
  leaseIdOf,
  type InstantMs,
  type MemberId,
} from '../../../src/core/words/ids.ts';
import type { LeaseOutcome } from '../../../src/core/words/outcome.ts';
import { LEASE_TTL_MS, type GroupSettings } from '../../../src/core/words/settings.ts';
import { SERVED } from '../../../src/core/words/signal.ts';
import { SOMEBODY, someTicket, START } from '../../support/core-builders.ts';
import { Clock } from '../simulator/clock.ts';
import { newCall, type FleetCall } from './call.ts';
import { FleetDisk } from './disk.ts';
import { Holders } from './holders.ts';
import { Isolates, type Isolate } from './isolates.ts';
import { Instance, type WriteFate } from './instance.ts';
import { Network } from './network.ts';
import { Refusals, type RefusalsRefused } from './refusals.ts';
import { DESIGN, type Rules } from './rules.ts';

/** How long a replaced instance sleeps. */
export const SLEEP_MS = 20 * 60_000;

/** Maximum instances that go on beside the current one. */
const STALE_MAX = 3;

/** How long an upstream refuses a model. */
const REFUSED_MS = 3_000;

const GOOD_WRITE: WriteFate = { landMs: 0, hearMs: 0 };

/**
 * What becomes of an instance that is replaced. It dies, it dies and nobody hears of it, it goes on without writes, or it
 * sleeps until the next message that is sent to the name of the group reaches it.
 */
export type Fallen = 'dies' | 'dies_silently' | 'goes_on' | 'sleeps';

interface FleetOptions {
  readonly rules?: Rules;
  /** The clocks of new instances say nothing: only what is stored tells which attachments were given out. */
  readonly isClockStuck?: boolean;
}

/**
 * Callers, holders, a network, a disk and an upstream that counts, around a group whose instances come, are
 * replaced, and go on beside the newest. The group's own counts are not believed: what matters is which calls run.
 */
export class Fleet {
  readonly clock = new Clock();
  readonly disk = new FleetDisk();
  readonly network: Network;
  readonly holders: Holders;
  readonly isolates: Isolates;
  readonly calls: FleetCall[] = [];
  /** The most slots that calls held at once which had not lapsed. */
  peak = 0;
  resets = 0;
  /** How often a slot has changed hands unwritten. */
  passes = 0;
  /** How often calls were refused while their member has narrower scopes. */
  scoped = 0;
  readonly #refusals = new Refusals();
  #settings: GroupSettings;
  readonly #rules: Rules;
  readonly #isClockStuck: boolean;
  readonly #stale: Instance[] = [];
  readonly #writeFates: WriteFate[] = [];
  /** Calls that may run, the others are over. */
  #live: FleetCall[] = [];
  /** Until when the upstream counts calls that have ended. */
  readonly #lagging = new Map<FleetCall, number>();
  #current: Instance;
  readonly #members: GroupSettings['members'];
  #frozenMs = 0;

  constructor(
    settings: GroupSettings,
    { rules = DESIGN, isClockStuck = false }: FleetOptions = {},
  ) {
    this.#settings = settings;
    this.#members = settings.members;
    this.#rules = rules;
    this.#isClockStuck = isClockStuck;
    this.clock.runTo(START);
    this.network = new Network(this.clock, (isStale) => this.#byName(isStale));
    this.holders = new Holders({
      clock: this.clock,
      network: this.network,
      rules,
      now: () => this.now,
      lostMs: () => this.#frozenMs,
      onStart: () => this.#check(),
      onKnown: (call) => this.isolates.settle(call),
      onLent: (call, handed, sentAt) => this.isolates.takeIn(call, handed, sentAt),
      onEndHeard: (call, outcome) => this.#lag(call, outcome),
      onGone: (call) => this.#checkGone(call),
    });
    this.isolates = new Isolates(2, {
      clock: this.clock,
      network: this.network,
      holders: this.holders,
      rules,
      now: () => this.now,
      lostMs: () => this.#frozenMs,
      onStart: () => this.#check(),
      onFence: () => this.#meetFences(),
    });
    this.#current = this.#load(null);
  }

  get now(): InstantMs {
    return instant(this.clock.now + this.#frozenMs);
  }

  get current(): Instance {
    return this.#current;
  }

  get state(): GroupState {
    return this.#current.state;
  }

  /** A call of an isolate that may start it on a slot that it was lent. */
  callIn(isolate: Isolate, isStrict: boolean): FleetCall {
    const call = this.#newCall(1, isStrict, { isolate: isolate.id });
    if (!this.isolates.start(call)) this.holders.ask(call);
    this.advance(0);
    return call;
  }

  /** Ends a call, and tells the group or its isolate. */
  finish(call: FleetCall, outcome: LeaseOutcome): void {
    if (!this.isolates.finish(call, outcome)) this.holders.finish(call, outcome);
  }

  /** Has a holder take its lease up again, or take one of its own. */
  resume(call: FleetCall): void {
    this.isolates.takeOwn(call);
    this.holders.resume(call);
  }

  arrive(slots: number, isStrict: boolean, parent: FleetCall | null = null): FleetCall {
    const call = this.#newCall(slots, isStrict, { parent });
    this.holders.ask(call);
    this.advance(0);
    return call;
  }

  #newCall(
    slots: number,
    isStrict: boolean,
    { parent = null, isolate }: { readonly parent?: FleetCall | null; readonly isolate?: string },
  ): FleetCall {
    const count = this.calls.length;
    const ticket = someTicket(`t${count}`, this.now, {
      holder: {
        ...SOMEBODY,
        tenant: `tenant-${count % 3}`,
        agent: count % 2 > 0 ? 'run' : null,
        model: count % 3 > 0 ? 'pro' : 'flash',
        ...(count % 4 === 3 && { tier: 'flex' }),
        ...(count % 5 > 1 && { credential: `key-${count % 5}` }),
      },
      ...(isolate !== undefined && { isolate }),
      slots,
      parents: parent === null ? [] : [parent.leaseId],
    });
    const call = newCall(ticket, leaseIdOf(ticket.id, 1), isStrict, this.now);
    this.calls.push(call);
    this.#live.push(call);
    return call;
  }

  in(phase: FleetCall['phase']): FleetCall[] {
    return this.#live.filter((call) => call.phase === phase);
  }

  /** The fate of a write to come. */
  foretellWrite(fate: Partial<WriteFate>): void {
    this.#writeFates.push({ ...GOOD_WRITE, ...fate });
  }

  /**
   * Has the group go by other members from now on; without any, its only one is the first of them. Not while somebody is
   * on the way to a lease at one of them: then it would begin by the key of that first one, whether there is room or not.
   */
  reconfigure(members: GroupSettings['members']): void {
    if (members.length === 0) {
      const { leases, bound } = this.state;
      const isGranted = ({ leaseId }: FleetCall): boolean =>
        leases.has(leaseId) || bound.grantedBefore.has(leaseId);
      if (this.in('asking').some(isGranted)) return;
      this.network.loseAsks();
    }
    const slotsMax = members.length === 0 ? this.#limitOf(IMPLICIT) : Infinity;
    this.#settings = { ...this.#settings, slotsMax, members };
    this.#current.apply({ kind: 'reconfigure', settings: this.#settings });
    this.advance(0);
  }

  /** All members that the group has had. */
  get members(): GroupSettings['members'] {
    return this.#members;
  }

  /** Replaces the instance, once `landed` of its writes on their way have landed; it hears of that after `hearMs`. */
  reset(fallen: Fallen, landed = Infinity, hearMs = 0): void {
    const before = this.#current;
    before.landFirst(landed, hearMs);
    this.#replace(before);
    if (fallen === 'sleeps') before.sleep();
    else if (fallen !== 'goes_on') before.die(fallen === 'dies_silently');
    this.advance(0);
  }

  /** Lets everything happen that is due within `ms`. */
  advance(ms: number): void {
    const target = this.clock.now + ms;
    for (;;) {
      const fenceAt = Math.min(...this.in('running').map((call) => this.#fenceOf(call)));
      this.clock.runTo(Math.min(target, Math.max(this.clock.now, fenceAt)));
      this.#meetFences();
      if (this.clock.now >= target) break;
    }
    this.#live = this.#live.filter(({ phase }) => phase !== 'over');
    this.#check();
  }

  /** All instances and holders stand still for so long, and the network with them. The upstream does not. */
  freeze(ms: number): void {
    this.#frozenMs += ms;
    for (const instance of [...this.#stale, this.#current]) {
      if (!instance.isAsleep) instance.apply({ kind: 'held_up', lostMs: ms });
    }
    this.advance(0);
  }

  /** Has the current instance write its controls with the next write. */
  learn(): void {
    this.#current.apply({ kind: 'relearn' });
    this.advance(0);
  }

  /** The upstream refuses calls like this one for a while. The current instance receives this if it knows the call. */
  refuse({ leaseId }: FleetCall, scope: RefusalsRefused): void {
    const lease = this.state.leases.get(leaseId);
    if (lease === undefined) return;
    const { member, holder } = lease;
    this.#refusals.note(member, holder, scope, this.now, REFUSED_MS);
    const signal = { ...SERVED, kind: 'requests', scope, retryAfterMs: REFUSED_MS } as const;
    this.#current.apply({ kind: 'report', leaseId, signal, isRepeat: false });
    const members = [...this.state.members.values()];
    if (members.some(({ scopes }) => scopes.size > 0)) this.scoped += 1;
    this.advance(0);
  }

  revoke(call: FleetCall): void {
    this.#current.apply({ kind: 'revoke', leaseId: call.leaseId });
    this.advance(0);
  }

  /** Ends the oldest instance that goes on beside the current one. */
  endStale(): void {
    this.#stale.find(({ isAlive }) => isAlive)?.die();
    this.advance(0);
  }

  /** No more calls arrive, and running calls succeed: the next queued call must start soon. Returns how many did. */
  drain(): number {
    const waiting = this.in('asking');
    const started = (): number => waiting.filter(({ at }) => at !== null).length;
    let before = 0;
    for (let seconds = 0; this.in('asking').length > 0; seconds += 1) {
      // Orphaned slots are freed after one TTL, and refused calls later.
      assert.ok(seconds < 60, 'calls are stuck');
      for (const call of this.in('running')) this.finish(call, 'success');
      this.advance(1_000);
      if (started() > before) seconds = 0;
      before = started();
    }
    return before;
  }

  /** Ends every call without a word and replaces the instance: nothing may be left after one TTL. */
  abandon(): void {
    this.network.cut();
    this.#writeFates.length = 0;
    for (const call of this.calls) call.phase = 'over';
    this.isolates.abandon();
    this.reset('dies_silently');
    this.advance(LEASE_TTL_MS);
    const {
      leases,
      lending: prefetching,
      slotsInUse,
      slotsNested,
      unclaimed,
      members,
    } = this.state;
    assert.deepEqual(
      [leases.size + prefetching.loans.size, slotsInUse, slotsNested, unclaimed.slots],
      [0, 0, 0, 0],
    );
    for (const member of members.values()) {
      assert.equal(member.slotsInUse + member.unclaimed, 0, `slots are in use at ${member.id}`);
    }
    this.advance(LEASE_TTL_MS / 10);
    assert.equal(this.disk.mark, 0, 'the mark stays up');
  }

  #byName(isStale: boolean): Instance {
    const stale = isStale ? this.#stale.findLast(({ isAlive }) => isAlive) : undefined;
    return stale ?? this.#current;
  }

  #replace(before: Instance): void {
    this.#stale.push(before);
    const alive = this.#stale.filter(({ isAlive }) => isAlive);
    this.#stale.splice(0, Infinity, ...alive);
    this.#current = this.#load(before.state);
    if (alive.length > STALE_MAX) alive[0]?.die();
  }

  #load(before: GroupState | null): Instance {
    const number = ++this.disk.owner;
    const stored = this.disk.load(this.clock.now);
    const first = this.#isClockStuck ? 1 : this.now * 1_000;
    const state = recover(this.#settings, stored, first, true, this.now);
    this.#rules.load(state, before);
    if (before !== null) this.resets += 1;
    return new Instance(number, state, {
      clock: this.clock,
      disk: this.disk,
      rules: this.#rules,
      now: () => this.now,
      nextWriteFate: () => this.#writeFates.shift() ?? GOOD_WRITE,
      onStep: (instance) => {
        if (instance !== this.#current) return;
        this.#check();
        this.#checkWaiters();
      },
      onPassed: () => (this.passes += 1),
      onDeath: (instance) => {
        if (instance !== this.#current) return;
        this.clock.after(0, () => {
          if (instance === this.#current) this.#replace(instance);
        });
      },
    });
  }

  #fenceOf(call: FleetCall): number {
    return call.hasLapsed ? Infinity : call.fenceAt;
  }

  #meetFences(): void {
    for (const call of this.in('running')) {
      if (this.clock.now < this.#fenceOf(call)) continue;
      if (call.isStrict) call.phase = 'over';
      else call.hasLapsed = true;
    }
  }

  /**
   * The upstream goes on counting a call for as long as the group's cool-down allows for, if the group hears of its end;
   * of several ends that it hears, the shortest counts.
   */
  #lag(call: FleetCall, outcome: LeaseOutcome): void {
    const { endedAt, hasLapsed, fenceAt, nested } = call;
    if (endedAt === null || hasLapsed || nested !== null) return;
    // A failed call with its caller's own key says nothing about the upstream.
    const isOfOwnKey = call.ticket.holder.credential !== undefined;
    const until = endedAt + (isOfOwnKey && outcome === 'failed' ? 0 : this.#cooldownMs(outcome));
    const known = this.#lagging.get(call);
    if (known !== undefined) this.#lagging.set(call, Math.min(until, known));
    else if (this.clock.now < fenceAt) this.#lagging.set(call, until);
  }

  #cooldownMs(outcome: LeaseOutcome): number {
    const { releaseCooldownMs, cancelCooldownMs, failureCooldownMs } = this.#settings;
    const ms = {
      success: releaseCooldownMs,
      cancelled: cancelCooldownMs,
      failed: failureCooldownMs,
      refused: 0,
      unused: 0,
    }[outcome];
    return ms === 'auto' ? 0 : ms;
  }

  /** Checks what must hold at every instant, by the calls that really run. */
  #check(): void {
    const { leases, lending, unclaimed, members } = this.state;
    const counted = new Map<MemberId, number>();
    const count = ({ member, ticket: { slots } }: FleetCall): void => {
      const key = this.#keyOf(member);
      counted.set(key, (counted.get(key) ?? 0) + slots);
    };
    let unknown = 0;
    /** The same by where they run, as the group counts it. */
    const unknownAt = new Map<MemberId, number>();
    for (const call of this.#live) {
      if (call.phase !== 'running' || call.hasLapsed || this.clock.now >= call.fenceAt) continue;
      const { slots } = call.ticket;
      if (call.nested === null) count(call);
      const lease = leases.get(call.leaseId);
      const { lent, at } = call;
      const isLent =
        lent !== null && at === null && lending.loans.get(lent.loan)?.slots.has(lent.slot) === true;
      if (isLent) continue;
      const isKnown = lease !== undefined && lease.phase !== 'cooling';
      if (!isKnown) unknown += slots;
      const runsAt = this.#countsAt(call.member);
      const isThere = isKnown && this.#keyOf(lease.member) === this.#keyOf(runsAt);
      if (isThere) continue;
      unknownAt.set(runsAt, (unknownAt.get(runsAt) ?? 0) + slots);
    }
    assert.ok(
      unknown <= unclaimed.slots,
      `${unknown} slots are held by calls that are not known, and ${unclaimed.slots} are unclaimed`,
    );
    const unplaced = members.get(IMPLICIT)?.unclaimed ?? 0;
    let uncounted = 0;
    for (const [member, slots] of unknownAt) {
      // What has the upstream's own key may have been handed out where that was a member's.
      const key = this.#keyOf(member);
      const here = key === IMPLICIT ? 0 : (members.get(key)?.unclaimed ?? 0);
      uncounted += Math.max(0, slots - here);
    }
    assert.ok(
      uncounted <= unplaced,
      `${uncounted} slots are held by calls that are not counted where they run`,
    );
    for (const [call, until] of this.#lagging) if (this.now < until) count(call);
    let all = 0;
    for (const [key, slots] of counted) {
      const at = key === IMPLICIT ? '' : ` at ${key}`;
      assert.ok(slots <= this.#limitOf(key), `${slots} slots are held at once${at}`);
      all += slots;
    }
    this.peak = Math.max(this.peak, all);
  }

  /**
   * Checks that nobody waits whom a member has room for, but for so long as a call may wait for its own, and behind one
   * that is wider and waits for that room. A member has none for calls that it has refused, and for others it has.
   */
  #checkWaiters(): void {
    const { now } = this;
    const { settings, serving, queue, grantsFrom, lending } = this.state;
    if (now < grantsFrom || (settings.members.length === 0 && lending.slots > 0)) return;
    const waiters = [...queue.byTicket.values()].filter(({ sliceEndsAt }) => sliceEndsAt !== null);
    const free = serving.map(({ id, settings: { slotsMax } }) => slotsMax - this.#usedAt(id));
    const { by, waitMs } = settings.affinity;
    const hasRoom = ({ ticket: { slots, holder } }: Waiter): boolean =>
      serving.some(({ id }, index) => {
        return slots <= (free[index] ?? 0) && !this.#refusals.mayHold(id, holder, now);
      });
    const roomless = waiters.filter((waiter) => !hasRoom(waiter));
    for (const waiter of waiters) {
      const { slots } = waiter.ticket;
      const isBarred = roomless.some(({ ticket }) => ticket.slots > slots);
      if (!hasRoom(waiter) || isBarred) continue;
      const since = this.#couldGoFrom.get(waiter) ?? now;
      this.#couldGoFrom.set(waiter, since);
      const mayWait = by !== 'none' && now < since + waitMs;
      assert.ok(mayWait, `${waiter.ticket.id} waits while a member has room`);
    }
  }

  /** Since when waiters could go somewhere. */
  readonly #couldGoFrom = new WeakMap<Waiter, number>();

  /** Slots that the group must take for used at a member, added up anew. */
  #usedAt(member: MemberId): number {
    const { leases, members, lending } = this.state;
    let slots = lending.slots;
    for (const id of new Set([member, IMPLICIT])) slots += members.get(id)?.unclaimed ?? 0;
    for (const lease of leases.values()) if (lease.member === member) slots += lease.slots;
    return slots;
  }

  /** Where the group counts calls by what their answers named: if it names no members, there is but one. */
  #countsAt(named: MemberId): MemberId {
    const { members } = this.state.settings;
    if (members.length === 0 || named !== IMPLICIT) return members.length === 0 ? IMPLICIT : named;
    return members.find(({ succeeds }) => succeeds === SOMEBODY.upstream)?.id ?? IMPLICIT;
  }

  /** Calls of a group that named no members ran by the key of the upstream itself. */
  #keyOf(member: MemberId): MemberId {
    if (member !== IMPLICIT) return member;
    return this.#members.find(({ succeeds }) => succeeds === SOMEBODY.upstream)?.id ?? IMPLICIT;
  }

  /** Slots of a key, by the upstream. */
  #limitOf(member: MemberId): number {
    const key = this.#keyOf(member);
    return this.#members.find(({ id }) => id === key)?.slotsMax ?? this.#settings.slotsMax;
  }

  /** A holder may believe that its lease is gone only if the current instance does not hold it by the same answer. */
  #checkGone(call: FleetCall): void {
    const lease = this.state.leases.get(call.leaseId);
    const isHeld = lease?.phase === 'held' && lease.attachment === call.attachment;
    assert.ok(!isHeld, 'a holder is stopped whose lease the current instance holds');
  }
}
