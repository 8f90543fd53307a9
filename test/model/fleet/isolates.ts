import assert from 'node:assert/strict';
import { LocalPrefetch, type LocalSlot } from '../../../src/call/acquire/local-prefetch.ts';
import { RENEWED_BEHIND_MS } from '../../../src/core/parts/bound.ts';
import type { KeeperReport } from '../../../src/core/parts/prefetches.ts';
import type { Claim } from '../../../src/core/orphaned.ts';
import { leaseId, ticketOf, type InstantMs } from '../../../src/core/words/ids.ts';
import type { LeaseOutcome } from '../../../src/core/words/outcome.ts';
import {
  LEASE_TTL_MS,
  PREFETCH_RENEW_EVERY_MS,
  PREFETCH_TTL_MS,
} from '../../../src/core/words/settings.ts';
import { SOMEBODY } from '../../support/core-builders.ts';
import type { Clock } from '../simulator/clock.ts';
import type { FleetCall } from './call.ts';
import type { Holders } from './holders.ts';
import type { InstanceAnswer, HandedOut, Instance } from './instance.ts';
import type { Network, NetworkParty } from './network.ts';
import type { Rules } from './rules.ts';

// As in `src/call/acquire/prefetched-slots.ts` and `loan-keeper.ts`, with the longest pauses that they draw.
const OWN_AFTER_MS = 1_000;
const LOOK_EVERY_MS = 250;
const ANSWER_LOST_MS = 3_000;
const RETRY_MS = 1_000;
const GIVE_BACK_PAUSES_MS = [0, 1_000, 3_000, 6_000];
const VERSION = 1;

/**
 * How long a strict holder holds by a loan's renewal, which is answered at once or within a second: an instance that was
 * replaced may do so for as long as its last write was not old.
 */
const HELD_BY_RENEWAL_MS = LEASE_TTL_MS - RENEWED_BEHIND_MS;

/** An isolate of a Worker, and its loan on which calls start. */
export interface Isolate extends NetworkParty {
  readonly id: string;
  cutUntil: number;
  loan: IsolatesKept | null;
}

/** A loan as its isolate has it, and what keeps it. */
interface IsolatesKept {
  readonly isolate: Isolate;
  readonly local: LocalPrefetch;
  /** The answer by which the keeper has it; null: nobody keeps it, or has yet been answered. */
  at: { readonly instance: Instance; readonly attachment: number } | null;
  /** Calls on it that have no lease of their own, as far as they know. */
  readonly calls: Map<FleetCall, LocalSlot>;
  /** Its slots are held until then. In time in which somebody could act. */
  fenceAt: number;
  /** Its isolate has died. */
  isDead: boolean;
}

interface IsolatesParts {
  readonly clock: Clock;
  readonly network: Network;
  readonly holders: Holders;
  readonly rules: Rules;
  readonly now: () => InstantMs;
  readonly lostMs: () => number;
  readonly onStart: (call: FleetCall) => void;
  /** Calls are at their fences. */
  readonly onFence: () => void;
}

/** Isolates that are lent slots: they start calls on them, keep them and give them back as the Worker does. */
export class Isolates {
  readonly all: readonly Isolate[];
  readonly #parts: IsolatesParts;

  constructor(count: number, parts: IsolatesParts) {
    this.#parts = parts;
    this.all = Array.from({ length: count }, (_, index) => newIsolate(`isolate-${index}`));
  }

  /** Starts a call on a lent slot of its isolate. False: it has to ask. */
  start(call: FleetCall): boolean {
    const isolate = this.#of(call);
    const kept = isolate?.loan ?? null;
    if (kept === null) return false;
    const slot = this.#parts.rules.borrow(kept.local, this.#parts.now());
    this.#seeToKeeper(kept);
    if (slot === null) return false;
    const isHeld = this.#parts.clock.now < kept.fenceAt;
    assert.ok(isHeld, 'a call starts on a slot that is not held any more');
    const now = this.#parts.now();
    call.phase = 'running';
    call.attachment = slot.attachment;
    call.lent = { loan: leaseId(kept.local.id), slot: leaseId(slot.slot) };
    call.grantedAt = now;
    call.fenceAt = kept.fenceAt;
    kept.calls.set(call, slot);
    this.#parts.onStart(call);
    this.#parts.clock.after(OWN_AFTER_MS, () => {
      if (call.phase !== 'running' || !kept.calls.has(call)) return;
      this.#takeOwn(kept, call);
      this.#parts.holders.resume(call);
    });
    return true;
  }

  /** Ends a call that runs on a lent slot. False: it has a lease, or is on its way to one. */
  finish(call: FleetCall, outcome: LeaseOutcome): boolean {
    const holding = this.#holding(call);
    const slot = holding?.calls.get(call);
    if (holding === null || slot === undefined || call.at !== null) return false;
    if (!this.#isLent(holding, call)) return false;
    if (outcome !== 'success' && outcome !== 'unused') {
      this.#takeOwn(holding, call);
      return false;
    }
    call.phase = 'over';
    call.endedAt = this.#parts.now();
    holding.calls.delete(call);
    if (holding.local.takeBack(slot)) this.#giveBack(holding, [slot], 0);
    else this.#seeToKeeper(holding);
    return true;
  }

  /** Takes in slots that came with an answer. */
  takeIn(call: FleetCall, { lent: prefetched, decidedAt }: HandedOut, sentAt: InstantMs): void {
    const isolate = this.#of(call);
    if (isolate === null || prefetched === null) return;
    const fenceAt = decidedAt - this.#parts.lostMs() + PREFETCH_TTL_MS;
    const last = isolate.loan;
    const how = this.#parts.rules.takeIn(last?.local ?? null, prefetched);
    let kept = last;
    if (kept === null || how === 'anew' || kept.local.id !== prefetched.loan) {
      const clock = { now: () => this.#parts.now() };
      const local = new LocalPrefetch(prefetched.loan, VERSION, sentAt, clock);
      kept = { isolate, local, at: null, calls: new Map(), fenceAt, isDead: false };
    }
    if (how === 'late') {
      const { slots, attachment } = prefetched;
      const unused = slots.map((slot) => ({ slot, attachment }));
      return this.#giveBack(kept, unused, 0);
    }
    if (last !== null && last !== kept) this.#older.add(last);
    isolate.loan = kept;
    kept.local.add(prefetched);
    this.#seeToKeeper(kept);
  }

  /** The context ends that keeps the loan of an isolate; `isHeard`: the group hears of it. */
  loseKeeper(isolate: Isolate, isHeard: boolean): void {
    const { loan } = isolate;
    if (loan === null) return;
    // Whatever it waits for it does not hear any more.
    loan.local.endKeeping(loan.local.beginKeeping());
    this.#leave(loan, isHeard);
  }

  /** An isolate dies, and with it all of its calls. */
  die(isolate: Isolate, isHeard: boolean, calls: readonly FleetCall[]): void {
    for (const call of calls) {
      if (this.#of(call) === isolate) this.#parts.holders.die(call, isHeard);
    }
    for (const kept of [isolate.loan, ...this.#older]) {
      if (kept?.isolate !== isolate) continue;
      this.#leave(kept, isHeard);
      kept.isDead = true;
    }
    isolate.loan = null;
  }

  /** All isolates end without a word. */
  abandon(): void {
    for (const isolate of this.all) {
      this.die(isolate, false, []);
    }
  }

  /** Notes that the group knows the lease of a call, or its end. */
  settle(call: FleetCall): void {
    const kept = this.#holding(call);
    const slot = kept?.calls.get(call);
    if (kept === null || slot === undefined) return;
    kept.calls.delete(call);
    kept.local.part(slot);
  }

  readonly #older = new Set<IsolatesKept>();

  #of({ ticket }: FleetCall): Isolate | null {
    return this.all.find(({ id }) => id === ticket.isolate) ?? null;
  }

  #isLent(kept: IsolatesKept, call: FleetCall): boolean {
    return kept.calls.has(call) && !this.#owned.has(call);
  }

  /** Calls that have asked for a lease of their own. */
  readonly #owned = new WeakSet<FleetCall>();

  /** Has a call that runs on a lent slot go on as one that has a lease of its own. */
  takeOwn(call: FleetCall): void {
    const kept = this.#holding(call);
    if (kept !== null) this.#takeOwn(kept, call);
  }

  #holding(call: FleetCall): IsolatesKept | null {
    const all = [this.#of(call)?.loan ?? null, ...this.#older];
    return all.find((each) => each?.calls.has(call) === true) ?? null;
  }

  #takeOwn({ local, calls }: IsolatesKept, call: FleetCall): void {
    const slot = calls.get(call);
    if (slot === undefined || this.#owned.has(call)) return;
    this.#owned.add(call);
    local.own(slot);
    call.renewedAt = local.renewedAt as InstantMs;
    call.ttlMs = PREFETCH_TTL_MS;
  }

  #seeToKeeper(kept: IsolatesKept): void {
    if (!kept.isDead && kept.local.needsKeeper) this.#begin(kept, kept.local.beginKeeping());
  }

  /** Has a new keeper take the loan over. */
  #begin(kept: IsolatesKept, keeper: number): void {
    this.#say(kept, keeper, null, true, (answer, from, sentOn, sentAt) => {
      if (answer.kind === 'gone') return this.#end(kept, keeper);
      if (answer.kind !== 'kept') return this.#retry(kept, keeper);
      kept.at = { instance: from, attachment: answer.attachment };
      this.#noteRenewed(kept, sentOn, sentAt);
      this.#renew(kept, keeper);
    });
    this.#look(kept, keeper);
  }

  #renew(kept: IsolatesKept, keeper: number): void {
    const { local, at } = kept;
    if (at === null || !local.isKeptBy(keeper)) return;
    if (local.isEmpty) return this.#stop(kept, keeper);
    this.#say(kept, keeper, at.instance, false, (answer, _from, sentOn, sentAt) => {
      // It has stopped meanwhile, and waits for no answer.
      if (kept.at !== at) return;
      if (answer.kind === 'gone') return this.#end(kept, keeper);
      if (answer.kind === 'revoking') {
        if (this.#parts.rules.recallRenews) this.#noteRenewed(kept, sentOn, sentAt);
        local.end(false);
        this.#giveBack(kept, local.takeFree(), 0);
        return this.#parts.clock.after(PREFETCH_RENEW_EVERY_MS, () => this.#renew(kept, keeper));
      }
      if (answer.kind !== 'ok') return this.#retry(kept, keeper);
      this.#noteRenewed(kept, sentOn, sentAt);
      this.#giveBack(kept, local.takeSpare(), 0);
      this.#renew(kept, keeper);
    });
  }

  #retry(kept: IsolatesKept, keeper: number): void {
    this.#leave(kept, true);
    if (kept.local.hasLapsed) return this.#end(kept, keeper);
    this.#parts.clock.after(RETRY_MS, () => {
      if (kept.local.isKeptBy(keeper)) this.#begin(kept, keeper);
    });
  }

  /** Nothing starts on it any more. */
  #end(kept: IsolatesKept, keeper: number): void {
    kept.local.end(true);
    this.#stop(kept, keeper);
  }

  #stop(kept: IsolatesKept, keeper: number): void {
    this.#giveBack(kept, kept.local.takeFree(), 0);
    kept.local.endKeeping(keeper);
    this.#leave(kept, true);
  }

  /** Looks now and then whether calls use the loan. */
  #look(kept: IsolatesKept, keeper: number): void {
    this.#parts.clock.after(LOOK_EVERY_MS, () => {
      const { local } = kept;
      if (kept.isDead || !local.isKeptBy(keeper) || local.isGone) return;
      if (local.isIdle || local.isOver) this.#giveBack(kept, local.takeFree(), 0);
      if (local.isEmpty) this.#stop(kept, keeper);
      else this.#look(kept, keeper);
    });
  }

  #noteRenewed(kept: IsolatesKept, sentOn: number, sentAt: InstantMs): void {
    kept.local.noteRenewed(sentAt);
    this.#setFence(kept, sentOn + HELD_BY_RENEWAL_MS);
  }

  #setFence(kept: IsolatesKept, at: number): void {
    // It may come sooner than was known.
    if (at < kept.fenceAt) this.#parts.clock.at(at, this.#parts.onFence);
    kept.fenceAt = at;
    for (const call of kept.calls.keys()) {
      if (call.phase === 'running' && call.at === null) call.fenceAt = at;
    }
  }

  /** Drops the answer by which the loan is kept. */
  #leave(kept: IsolatesKept, isHeard: boolean): void {
    const { isolate, local, at } = kept;
    kept.at = null;
    if (at === null) return;
    const { clock, network } = this.#parts;
    this.#setFence(kept, Math.min(kept.fenceAt, clock.now + PREFETCH_TTL_MS));
    if (!isHeard) return;
    const { attachment } = at;
    const loanId = leaseId(local.id);
    network.send({
      of: 'detach',
      call: isolate,
      to: at.instance,
      deliver: (instance) => instance.apply({ kind: 'leave_loan', loanId, attachment }),
      hear: () => {},
    });
  }

  #say(
    kept: IsolatesKept,
    keeper: number,
    to: Instance | null,
    isNew: boolean,
    hear: (answer: InstanceAnswer, from: Instance, sentOn: number, sentAt: InstantMs) => void,
  ): void {
    const { clock, network, now } = this.#parts;
    const { local, isolate } = kept;
    const sentOn = clock.now;
    const sentAt = now();
    let isOver = false;
    const once = (answer: InstanceAnswer, from: Instance): void => {
      if (isOver || kept.isDead || !local.isKeptBy(keeper)) return;
      isOver = true;
      hear(answer, from, sentOn, sentAt);
    };
    const told = this.#told(kept);
    network.send({
      of: 'keep_loan',
      call: isolate,
      to,
      deliver: (instance, reply) => instance.keepPrefetch(leaseId(local.id), isNew, told, reply),
      hear: once,
    });
    const lostMs = ANSWER_LOST_MS + (isNew ? 0 : PREFETCH_RENEW_EVERY_MS);
    clock.after(lostMs, () => {
      if (isOver || kept.isDead || !local.isKeptBy(keeper)) return;
      isOver = true;
      this.#retry(kept, keeper);
    });
  }

  #told(kept: IsolatesKept): KeeperReport {
    const { known, used, peak } = kept.local.report();
    return { known, used, peak, ended: [] };
  }

  #giveBack(kept: IsolatesKept, slots: readonly LocalSlot[], tries: number): void {
    const pauseMs = GIVE_BACK_PAUSES_MS[tries];
    if (slots.length === 0 || pauseMs === undefined) return;
    const { clock, network, rules } = this.#parts;
    const { local, isolate } = kept;
    clock.after(pauseMs, () => {
      if (kept.isDead) return;
      const claims = slots.map((slot) => claimOf(slot, local.hasLapsed));
      const told = this.#told(kept);
      const loanId = leaseId(local.id);
      let isOver = false;
      const next = (isNeeded: boolean): void => {
        if (isOver) return;
        isOver = true;
        if (isNeeded) this.#giveBack(kept, slots, tries + 1);
      };
      network.send({
        of: 'give_back',
        call: isolate,
        to: null,
        deliver: (instance, reply) => {
          if (claims.some((claim) => rules.refuses(instance.state, claim))) {
            return reply({ kind: 'broken' });
          }
          instance.apply({ kind: 'give_back', loanId, claims, told });
          reply({ kind: 'released' });
        },
        hear: (answer) => next(answer.kind === 'broken'),
      });
      clock.after(ANSWER_LOST_MS, () => next(true));
    });
  }
}

function claimOf({ slot, attachment }: LocalSlot, hasLapsed: boolean): Claim {
  const id = leaseId(slot);
  const of = { leaseId: id, ticketId: ticketOf(id), holder: SOMEBODY, lane: 'normal' as const };
  const none = { nested: null, heirOf: [], reserved: null };
  return { ...of, ...none, slots: 1, attachment, hasLapsed, heldMs: 0 };
}

function newIsolate(id: string): Isolate {
  return { id, cutUntil: 0, loan: null };
}
