import assert from 'node:assert/strict';
import { roomAt } from '../../../src/core/capacity.ts';
import { emptyControls } from '../../../src/core/member.ts';
import type { Effect, GroupEvent } from '../../../src/core/events.ts';
import { instant, leaseIdOf, type InstantMs, type LeaseId } from '../../../src/core/words/ids.ts';
import { nextWaiter } from '../../../src/core/order.ts';
import { demandOf } from '../../../src/core/parts/demand.ts';
import type { Waiter } from '../../../src/core/parts/queue.ts';
import { recover, emptyState, type Stored } from '../../../src/core/recover.ts';
import type { GroupSettings } from '../../../src/core/words/settings.ts';
import { NEVER, type GroupState, type ActiveLease } from '../../../src/core/state.ts';
import { nextWakeAt, step } from '../../../src/core/step.ts';
import { ALL_CALLS, isSameScope } from '../../../src/core/words/signal.ts';
import type { Ticket, Settlement } from '../../../src/core/words/ticket.ts';
import { slotsHeld } from '../../../src/core/stats.ts';
import { confirmWrite, takeWrite } from '../../../src/core/writes.ts';
import { answersOf, SOMEBODY, someTicket, START } from '../../support/core-builders.ts';
import { Disk } from '../disk.ts';
import type { LimitAction, Size } from './limit-actions.ts';
import { checkGranted, checkLedger, checkRest } from './limit-checks.ts';
import { LimitHolders } from './limit-holders.ts';
import { LimitLedger } from './limit-ledger.ts';

const SLICE_MS = 30_000;
const ATTACHMENTS_PER_INSTANCE = 1_000_000;

/** How much of a history may be needed to come to rest: a limit of one request in a minute takes long. */
const REST_STEPS_MAX = 5_000;

/**
 * The core with limits, an upstream that answers as it likes, and beside it the ledger of what may be
 * taken. Callers ask again whenever their slice is over.
 */
export class LimitWorld {
  now: InstantMs = START;
  /** Every answer, with its time, and what the controls were at the end of it. */
  readonly history: string[] = [];
  readonly seen = {
    granted: 0,
    waitedForTime: 0,
    overtook: 0,
    tooLarge: 0,
    stopped: 0,
    opened: 0,
    probed: 0,
    refused: 0,
    resumed: 0,
    left: 0,
    scoped: 0,
  };
  readonly #ledger: LimitLedger;
  readonly #disk = new Disk();
  readonly #holders = new LimitHolders();
  /** Leases of an instance before whose holders have yet to take them up. */
  readonly #awaited = new Set<LeaseId>();
  readonly #tickets = new Map<string, Ticket>();
  readonly #ended: LeaseId[] = [];
  #state: GroupState;
  #instances = 1;

  constructor(settings: GroupSettings) {
    this.#state = emptyState(settings, 1, emptyControls(START), true);
    this.#ledger = new LimitLedger(settings);
  }

  run(action: LimitAction): void {
    switch (action.kind) {
      case 'ask':
        return this.#ask(action);
      case 'end':
        return this.#withLease(action.pick, ({ id: leaseId, reserved }) => {
          const { outcome, used, counts } = action;
          const settlement =
            used === null || reserved === null ? null : usage(reserved, used, counts);
          this.#step({ kind: 'release', leaseId, outcome, settlement });
        });
      case 'end_again': {
        const leaseId = this.#ended[action.pick % this.#ended.length];
        if (leaseId === undefined) return;
        const settlement = { requests: 1, inputTokens: 9, outputTokens: 9, usd: 9, seen: null };
        const { outcome } = action;
        const claim = this.#holders.claim(leaseId, this.now);
        assert.ok(claim !== undefined);
        return this.#step({ kind: 'release', leaseId, outcome, settlement, claim });
      }
      case 'report':
        return this.#withLease(action.pick, ({ id: leaseId }) => {
          const { signal, isRepeat } = action;
          this.#step({ kind: 'report', leaseId, signal: { ...signal, hints: [] }, isRepeat });
        });
      case 'cancel_waiter': {
        const waiters = [...this.#state.queue.byTicket.keys()];
        const ticketId = waiters[action.pick % waiters.length];
        if (ticketId !== undefined) this.#step({ kind: 'cancel', ticketId });
        return;
      }
      case 'cancel_lease':
        return this.#withLease(action.pick, ({ ticketId }) => {
          this.#step({ kind: 'cancel', ticketId });
        });
      case 'detach':
        return this.#withLease(action.pick, ({ id: leaseId, attachment }) => {
          this.#step({ kind: 'detach', leaseId, attachment });
        });
      case 'renew_all':
        for (const { id: leaseId } of this.#held()) {
          this.#step({ kind: 'renew', leaseId });
          this.#holders.renew(leaseId, this.now);
        }
        return;
      case 'reset':
        return this.#reset();
      case 'reconfigure': {
        const settings = { ...this.#state.settings, ...action.changes };
        this.#ledger.reconfigure(settings);
        return this.#step({ kind: 'reconfigure', settings });
      }
      case 'advance':
        return this.#advanceTo(this.now + action.ms);
      case 'oversleep':
        this.now = instant(this.now + action.ms);
        return this.#step({ kind: 'tick' });
      case 'advance_to_wake': {
        const wakeAt = nextWakeAt(this.#state, this.now);
        if (wakeAt === Infinity) return;
        return this.#advanceTo(Math.max(this.now, wakeAt + action.offsetMs));
      }
    }
  }

  /**
   * Nobody comes any more, the upstream takes every call, and each ends after a second: everybody who
   * waits must be granted before its time-out, and nothing may stay behind.
   */
  drain(): void {
    const { settings } = this.#state;
    const rates = { ...settings.rates, rpm: settings.rates.rpm === null ? null : 20 };
    const budgets = { perHourUsd: null, perDayUsd: null, perMonthUsd: null };
    const open = { slotsMax: Math.max(3, settings.slotsMax), paused: false, rates, budgets };
    this.run({ kind: 'reconfigure', changes: open });
    for (let steps = 0; !this.#isAtRest(); steps += 1) {
      assert.ok(steps < REST_STEPS_MAX, 'the group does not come to rest');
      const [lease] = this.#held();
      if (lease === undefined) {
        const wakeAt = nextWakeAt(this.#state, this.now);
        assert.notEqual(wakeAt, Infinity, 'somebody waits, and nothing will wake the group');
        this.#advanceTo(Math.max(this.now, wakeAt));
        continue;
      }
      this.#advanceTo(this.now + 1_000);
      const { id: leaseId } = lease;
      const signal = { kind: 'served', retryAfterMs: null, slotsMax: null, hints: [] } as const;
      this.#step({ kind: 'report', leaseId, signal, isRepeat: false });
      this.#step({ kind: 'release', leaseId, outcome: 'success', settlement: null });
    }
    checkRest(this.#state);
  }

  #isAtRest(): boolean {
    const { leases, queue, unclaimed: orphaned } = this.#state;
    return leases.size + queue.byTicket.size + orphaned.slots === 0;
  }

  #ask(action: Extract<LimitAction, { kind: 'ask' }>): void {
    const { size, slots, wait, isTry, patienceMs, names } = action;
    const { isHard, slotsMax } = this.#state.settings;
    const ticket = someTicket(`t${this.#tickets.size}`, this.now, {
      holder: { ...SOMEBODY, ...names },
      estimate: estimateOf(size),
      slots: isHard || slotsMax >= slots ? slots : 1,
      wait,
      isTry,
      deadlineAt: patienceMs === null ? null : instant(this.now + patienceMs),
    });
    this.#tickets.set(ticket.id, ticket);
    this.#askFor(ticket);
  }

  #askFor(ticket: Ticket): void {
    const leaseId = leaseIdOf(ticket.id, 1);
    this.#step({ kind: 'acquire', ticket, leaseId, sliceMs: SLICE_MS });
  }

  #held(): ActiveLease[] {
    return [...this.#state.leases.values()].filter(({ phase }) => phase !== 'cooling');
  }

  #withLease(pick: number, work: (lease: ActiveLease) => void): void {
    const held = this.#held();
    const lease = held[pick % held.length];
    if (lease !== undefined) work(lease);
  }

  /**
   * Replaces the instance once all that it knows is written. Holders take their leases up again at once, and then
   * callers who waited ask again.
   */
  #reset(): void {
    const held = this.#held();
    const asking = [...this.#state.queue.byTicket.values()].map(({ ticket }) => ticket);
    const { settings } = this.#state;
    // No row is older than another one.
    this.#state.isControlsDirty = true;
    this.#write();
    const stored = JSON.parse(JSON.stringify(this.#disk.read())) as Stored;
    const attachments = ATTACHMENTS_PER_INSTANCE * this.#instances++;
    this.#state = recover(settings, stored, attachments, true, this.now);
    this.#ledger.reset(stored.ahead, this.#disk.mark, this.now);
    if (slotsHeld(this.#state) > 0) this.#write();
    for (const { id } of held) this.#awaited.add(id);
    this.#check('reset', []);
    for (const lease of held) this.#resume(lease);
    if (this.#state.unclaimed.slots > 0) this.seen.left += 1;
    for (const ticket of asking) this.#askFor(ticket);
  }

  #resume({ id, slots }: ActiveLease): void {
    const claim = this.#holders.claim(id, this.now);
    assert.ok(claim !== undefined);
    this.#ledger.claim(slots, this.now);
    this.#awaited.delete(id);
    this.#step({ kind: 'resume', claim });
    assert.ok(this.#state.leases.has(id), `${id} did not come back`);
    assert.equal(this.#state.totals.resurrected, 0, `${id} was not among the unclaimed`);
    this.seen.resumed += 1;
  }

  /** Writes what there is to write. It arrives at once. */
  #write(): void {
    const write = takeWrite(this.#state, this.now);
    this.#disk.send(write, this.now);
    for (let seq = this.#disk.arrive(); seq !== null; seq = this.#disk.arrive()) {
      confirmWrite(this.#state, seq);
    }
  }

  /** Writes what a step asks for. No answer with a lease leaves before all that it hands out is on disk. */
  #perform(effects: readonly Effect[], told: string): void {
    const grants = effects.filter((effect) => effect.kind === 'grant');
    const isDue = effects.some(({ kind }) => kind === 'write');
    if (isDue || grants.some(({ isCovered }) => !isCovered)) this.#write();
    for (const { lease } of grants) this.#holders.hear(lease, this.now);
    if (grants.length === 0) return;
    assert.ok(slotsHeld(this.#state) <= this.#disk.mark, `${told}: more is held than is marked`);
    const left = Object.values(this.#state.ahead.left);
    assert.ok(!left.some((amount) => amount < 0), `${told}: more is used than is set aside`);
  }

  #advanceTo(target: number): void {
    for (;;) {
      const wakeAt = Math.max(this.now, nextWakeAt(this.#state, this.now));
      this.#checkUntil(Math.min(wakeAt - 1, target));
      if (wakeAt > target) break;
      this.now = instant(wakeAt);
      this.#step({ kind: 'tick' });
    }
    this.now = instant(Math.max(this.now, target));
  }

  /** While nobody wakes the group, there must be no room for whose turn it is. */
  #checkUntil(target: number): void {
    const next = nextWaiter(this.#state, this.now);
    if (next === undefined) return;
    if (this.#state.roomDueAt !== Infinity) this.seen.waitedForTime += 1;
    const { until } = this.#state.controls.pause;
    const span = target - this.now;
    for (const at of [target, this.now + Math.floor(span / 2), until, until + 2_000]) {
      if (at < this.now || at > target) continue;
      assert.ok(
        this.#state.serving.every(
          (member) => roomAt(this.#state, member, next.demand, instant(at)) > at,
        ),
        'the group sleeps beside a waiter',
      );
      this.#checkConserved(at);
    }
  }

  /** Where the ledger is sure that there is room, nobody waits. */
  #checkConserved(at: number): void {
    const next = nextWaiter(this.#state, this.now);
    const { settings, slotsInUse, grantsFrom } = this.#state;
    if (next === undefined || !this.#ledger.isCalm || at < grantsFrom) return;
    if (slotsInUse + next.demand.slots > settings.slotsMax) return;
    const isRoom = this.#ledger.hasRoom(next.demand, at);
    assert.ok(!isRoom, `${next.ticket.id} waits though there is room for it`);
  }

  #step(event: GroupEvent): void {
    const before = this.#state.controls.breaker;
    // Of a narrower scope it moves there with the first call outside of it.
    const isOfAll = isSameScope(
      this.#state.serving[0]?.controls.scopes.about ?? ALL_CALLS,
      ALL_CALLS,
    );
    const wasOpen = isOfAll && before.phase === 'open' && this.now < before.openUntil;
    const live = new Map(this.#held().map((lease) => [lease.id, lease.until]));
    const isLive = (id: LeaseId): boolean => (live.get(id) ?? 0) > this.now;
    if (event.kind === 'report' && isLive(event.leaseId)) this.#hear(event);
    const first = nextWaiter(this.#state, this.now);
    const dueAt = first === undefined ? NEVER : this.#dueAt(first);
    this.#ledger.wake(this.now);
    const effects = step(this.#state, event, this.now);
    const told = `at ${this.now - START}, ${event.kind}`;
    const fresh: ActiveLease[] = [];
    for (const effect of effects) {
      if (effect.kind === 'ended') this.#ended.push(effect.leaseId);
      if (effect.kind === 'ended' && this.#ledger.has(effect.leaseId)) {
        const how = isLive(effect.leaseId) ? settlementOf(event) : null;
        this.#ledger.settle(effect.leaseId, how, this.now);
      }
      if (effect.kind === 'grant' && !this.#ledger.has(effect.lease.id)) {
        const { id, reserved } = effect.lease;
        assert.ok(reserved !== null, `${told}: nothing was taken for ${id}`);
        this.#ledger.grant(id, reserved.demand, reserved.usd, this.now);
        fresh.push(effect.lease);
      }
      this.#count(effect);
    }
    this.seen.granted += fresh.length;
    this.#perform(effects, told);
    this.history.push(`${told}: ${answersOf(effects).join(', ')}`);
    assert.ok(!wasOpen || fresh.length === 0, `${told}: granted though the breaker is open`);
    if (wasOpen) this.seen.opened += 1;
    this.#check(told, fresh);
    // Only those who come or go by themselves: what an upstream or an operator says changes everything.
    const isQuiet = event.kind === 'acquire' || event.kind === 'tick';
    // Whoever is older and came back was in front, so that first in line changed for a moment.
    const isBehind = ({ ticketId }: ActiveLease): boolean =>
      (this.#tickets.get(ticketId)?.enqueuedAt ?? 0) > (first?.ticket.enqueuedAt ?? Infinity);
    const hasOvertaken = isQuiet && fresh.length > 0 && fresh.every(isBehind);
    if (hasOvertaken && first !== undefined && nextWaiter(this.#state, this.now) === first) {
      this.seen.overtook += fresh.length;
      const isInTime = this.#state.roomDueAt <= Math.max(dueAt, this.now);
      assert.ok(isInTime, `${told}: ${first.ticket.id} is delayed by who overtook it`);
    }
    if (event.kind === 'tick') {
      assert.ok(nextWakeAt(this.#state, this.now) > this.now, `${told}: it would spin`);
    }
    for (const effect of effects) {
      const ticket = effect.kind === 'pending' ? this.#tickets.get(effect.ticketId) : undefined;
      if (ticket !== undefined) this.#askFor(ticket);
    }
  }

  /** Finds when a waiter would have room if no other call took any. */
  #dueAt({ ticket }: Waiter): number {
    const state = this.#state;
    const demand = demandOf(state.controls.factors, state.guessRates, ticket);
    return Math.min(...state.serving.map((member) => roomAt(state, member, demand, this.now)));
  }

  #hear({ signal, isRepeat }: Extract<GroupEvent, { kind: 'report' }>): void {
    const { kind, retryAfterMs, scope } = signal;
    this.#ledger.isCalm = false;
    // What it holds is checked by the state of its scope.
    if (scope !== undefined) return;
    if (kind !== 'served' && !isRepeat) this.#ledger.refused(kind, retryAfterMs, this.now);
  }

  #count(effect: Effect): void {
    if (effect.kind !== 'reject') return;
    assert.notEqual(effect.rejection.reason, 'queue_full');
    if (effect.rejection.reason === 'never_fits') this.seen.tooLarge += 1;
    const isStopped = ['paused', 'upstream_limited'].includes(effect.rejection.reason);
    if (isStopped) this.seen.stopped += 1;
    if (effect.rejection.reason === 'budget_exhausted') this.seen.refused += 1;
  }

  #check(told: string, fresh: readonly ActiveLease[]): void {
    checkLedger(this.#state, this.#ledger, this.#awaited, told, this.now);
    checkGranted(this.#state, fresh, this.#awaited, told, this.now);
    if (this.#state.controls.breaker.phase === 'half_open') this.seen.probed += fresh.length;
    if (this.#state.controls.scopes.narrower.length > 0) this.seen.scoped += fresh.length;
    this.#checkConserved(this.now);
  }
}

function estimateOf({ input, output, usd }: Size): Ticket['estimate'] {
  const price = { input: usd / input, output: 0 };
  return { inputTokens: input, maxOutputTokens: output, reserve: 'max_tokens', price };
}

function usage(
  { demand, usd }: NonNullable<ActiveLease['reserved']>,
  part: number,
  counts: boolean,
) {
  const inputTokens = Math.floor(part * demand.inputTokens);
  const outputTokens = Math.floor(part * demand.outputTokens);
  const cost = Math.floor(4 * part * usd) / 4;
  return { requests: counts ? 1 : 0, inputTokens, outputTokens, usd: cost, seen: null };
}

/** Reads what an event says of a lease that ended by it. */
function settlementOf(event: GroupEvent): Settlement | 'unused' | null {
  if (event.kind === 'cancel') return 'unused';
  if (event.kind !== 'release') return null;
  return event.outcome === 'unused' ? 'unused' : event.settlement;
}
