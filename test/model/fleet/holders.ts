import type { LeaseOutcome } from '../../../src/core/words/outcome.ts';
import type { InstantMs } from '../../../src/core/words/ids.ts';
import { LEASE_TTL_MS } from '../../../src/core/words/settings.ts';
import { COVERS_MS } from '../../../src/core/parts/bound.ts';
import type { Clock } from '../simulator/clock.ts';
import { claimOf, type FleetCall } from './call.ts';
import type { InstanceAnswer, HandedOut, Instance, Reply } from './instance.ts';
import type { Network } from './network.ts';
import type { Rules } from './rules.ts';

const SLICE_MS = 8_000;
const ASK_AHEAD_MS = 1_000;
const ASK_AGAIN_MS = 100;

// As in `src/call/acquire/lease-holder.ts`, with the longest pauses that it draws, and none before the first resumption.
const FIRST_RENEWAL_MS = 1_000;
const RENEWAL_LOST_MS = 20_000;
const ANSWER_LOST_MS = 3_000;
const RELEASE_PAUSES_MS = [0, 1_000, 3_000, 6_000];
const RESUME_RETRY_MS = 50;
const RESUME_RETRY_MAX_MS = 4_000;

/**
 * How long a strict holder holds by an answer, from when that was decided. An instance that was replaced may still decide so
 * for `COVERS_MS`, and what it handed out is counted for one TTL from then on.
 */
const HELD_BY_ANSWER_MS = LEASE_TTL_MS - COVERS_MS;

interface HoldersParts {
  readonly clock: Clock;
  readonly network: Network;
  readonly rules: Rules;
  readonly now: () => InstantMs;
  /** How long it was that nobody could act, until now. */
  readonly lostMs: () => number;
  /** A call has begun at the upstream, or an end of it was heard for the first time. */
  readonly onStart: (call: FleetCall) => void;
  readonly onEndHeard: (call: FleetCall, outcome: LeaseOutcome) => void;
  /** An answer brought slots for the isolate of a call, which asked at `sentAt`. */
  readonly onLent: (call: FleetCall, handed: HandedOut, sentAt: InstantMs) => void;
  /** The group knows the lease of a call that ran on a lent slot, or its end. */
  readonly onKnown: (call: FleetCall) => void;
  /** A holder stops because an instance said that its lease is gone. */
  readonly onGone: (call: FleetCall) => void;
}

/** Doings of callers and holders by themselves: they ask, renew, resume and release as the Worker does. */
export class Holders {
  readonly #parts: HoldersParts;

  constructor(parts: HoldersParts) {
    this.#parts = parts;
  }

  ask(call: FleetCall): void {
    const { clock, network } = this.#parts;
    const turn = ++call.askTurn;
    const again = (): void => {
      if (call.phase === 'asking' && call.askTurn === turn) this.ask(call);
    };
    const { ticket, leaseId } = call;
    call.isAnew ||= call.hasLostAsk && call.unheardAsks === 0;
    call.unheardAsks += 1;
    const { isAnew } = call;
    let isOver = false;
    const onLost = (answer: InstanceAnswer, from: Instance): void => {
      // The runtime disposes of what a caller never got. One that has, or may get, another answer holds the lease by that.
      if (answer.kind === 'lease' && call.phase === 'asking' && call.openAsks === 0) {
        this.#detach(call, answer.lease.attachment, from);
      }
    };
    const sentAt = this.#parts.now();
    network.send({
      of: 'ask',
      call,
      to: null,
      deliver: (instance, reply) =>
        instance.acquire({ kind: 'acquire', ticket, leaseId, sliceMs: SLICE_MS, isAnew }, reply),
      onCarry: () => (call.openAsks += 1),
      hear: (answer, from) => {
        call.openAsks -= 1;
        // An ask has one answer, however often it was delivered.
        if (isOver) return onLost(answer, from);
        isOver = true;
        call.unheardAsks -= 1;
        call.hasLostAsk ||= answer.kind === 'broken';
        if (answer.kind === 'lease') {
          // Only the first grant that comes brings them: those of a later one nobody knows.
          if (call.phase === 'asking') this.#parts.onLent(call, answer.lease, sentAt);
          return this.#adopt(call, answer.lease, from);
        }
        if (call.askTurn !== turn || call.phase !== 'asking') return;
        if (answer.kind === 'broken') clock.after(ASK_AGAIN_MS, again);
        else if (answer.kind === 'pending') clock.after(0, again);
        else call.phase = 'over';
      },
      onLost: (answer, from) => {
        call.openAsks -= 1;
        onLost(answer, from);
      },
    });
    clock.after(SLICE_MS - ASK_AHEAD_MS, again);
  }

  leave(call: FleetCall): void {
    call.phase = 'over';
    const { id: ticketId } = call.ticket;
    this.#tell(call, null, (instance) => instance.apply({ kind: 'cancel', ticketId }));
  }

  /** Ends a call, and tells the group. */
  finish(call: FleetCall, outcome: LeaseOutcome): void {
    const { clock, network } = this.#parts;
    call.phase = 'over';
    call.endedAt = this.#parts.now();
    const { leaseId, at, isSole } = call;
    if (at === null) return this.#releaseById(call, outcome, 0);
    let isOver = false;
    const byId = (isNeeded: boolean): void => {
      if (isOver) return;
      isOver = true;
      if (isNeeded) this.#releaseById(call, outcome, 0);
      else this.#dispose(call);
    };
    network.send({
      of: 'release',
      call,
      to: at,
      deliver: (instance, reply) => {
        this.#hearEnd(call, outcome);
        instance.apply({ kind: 'release', leaseId, outcome, settlement: null, isSole });
        reply({ kind: 'released' });
      },
      hear: (answer) => byId(answer.kind === 'broken'),
    });
    clock.after(ANSWER_LOST_MS, () => byId(true));
  }

  /** Its process dies, and with it the call; the group may hear that its connections broke. */
  die(call: FleetCall, isHeard: boolean): void {
    call.phase = 'over';
    call.endedAt = this.#parts.now();
    if (isHeard) this.#dispose(call);
  }

  /** Takes its lease up again. */
  resume(call: FleetCall): void {
    this.#resume(call, ++call.loopTurn, 0);
  }

  #releaseById(call: FleetCall, outcome: LeaseOutcome, attempts: number): void {
    const { clock, network, now } = this.#parts;
    const pauseMs = RELEASE_PAUSES_MS[attempts];
    if (pauseMs === undefined) {
      this.#parts.onKnown(call);
      return this.#dispose(call);
    }
    clock.after(pauseMs, () => {
      const { leaseId } = call;
      const claim = claimOf(call, now());
      let isOver = false;
      const next = (isNeeded: boolean): void => {
        if (isOver) return;
        isOver = true;
        if (isNeeded) return this.#releaseById(call, outcome, attempts + 1);
        this.#parts.onKnown(call);
        this.#dispose(call);
      };
      network.send({
        of: 'release_by_id',
        call,
        to: null,
        deliver: (instance, reply) => {
          this.#hearEnd(call, outcome);
          instance.apply({ kind: 'release', leaseId, outcome, settlement: null, claim });
          reply({ kind: 'released' });
        },
        hear: (answer) => next(answer.kind === 'broken'),
      });
      clock.after(ANSWER_LOST_MS, () => next(true));
    });
  }

  #hearEnd(call: FleetCall, outcome: LeaseOutcome): void {
    this.#parts.onEndHeard(call, outcome);
  }

  /** Of two answers that carry the lease the one with the larger attachment holds it. */
  #adopt(
    call: FleetCall,
    { attachment, nested, heirOf: nextHolderOf, named, decidedAt }: HandedOut,
    from: Instance,
  ): void {
    const { now, lostMs } = this.#parts;
    if (call.phase === 'over' || attachment < call.attachment) {
      return this.#detach(call, attachment, from);
    }
    if (call.phase === 'running') this.#dispose(call);
    this.#parts.onKnown(call);
    call.at = from;
    call.attachment = attachment;
    call.heirOf = nextHolderOf;
    call.ttlMs = LEASE_TTL_MS;
    if (call.phase === 'running') {
      // The instance takes it to run there.
      if (named !== call.member) this.resume(call);
      return;
    }
    call.phase = 'running';
    call.member = named;
    call.nested = nested;
    call.grantedAt = now();
    call.renewedAt = now();
    call.fenceAt = decidedAt - lostMs() + HELD_BY_ANSWER_MS;
    this.#parts.onStart(call);
    const turn = ++call.loopTurn;
    this.#parts.clock.after(FIRST_RENEWAL_MS, () => this.#renew(call, turn));
  }

  #renew(call: FleetCall, turn: number): void {
    if (call.phase !== 'running' || call.loopTurn !== turn) return;
    const { network, clock, now } = this.#parts;
    const { leaseId, at } = call;
    const sentAt = now();
    const sentOn = clock.now;
    let isOver = false;
    const once = (answer: InstanceAnswer): void => {
      if (isOver) return;
      isOver = true;
      if (call.phase !== 'running' || call.loopTurn !== turn) return;
      if (answer.kind === 'ok') {
        call.renewedAt = sentAt;
        call.fenceAt = sentOn + LEASE_TTL_MS;
        return this.#renew(call, turn);
      }
      if (answer.kind === 'revoking') return this.finish(call, 'cancelled');
      this.#resume(call, turn, 0);
    };
    network.send({
      of: 'renew',
      call,
      to: at,
      deliver: (instance, reply) => instance.renew(leaseId, reply),
      hear: once,
    });
    clock.after(RENEWAL_LOST_MS, () => once({ kind: 'broken' }));
  }

  #resume(call: FleetCall, turn: number, tries: number): void {
    const { clock } = this.#parts;
    const retryMs = Math.min(RESUME_RETRY_MAX_MS, RESUME_RETRY_MS * 2 ** (tries - 1));
    const pauseMs = tries === 0 ? 0 : retryMs;
    const isCurrent = (): boolean => call.phase === 'running' && call.loopTurn === turn;
    clock.after(pauseMs, () => {
      if (!isCurrent()) return;
      let isOver = false;
      const end = (how: 'resumed' | 'gone' | 'failed'): void => {
        if (isOver || !isCurrent()) return;
        isOver = true;
        if (how === 'resumed') this.#renew(call, turn);
        else if (how === 'failed') this.#resume(call, turn, tries + 1);
        else this.#stop(call);
      };
      this.#resumeOnce(call, end);
      clock.after(ANSWER_LOST_MS, () => end('failed'));
    });
  }

  #resumeOnce(call: FleetCall, end: (how: 'resumed' | 'gone' | 'failed') => void): void {
    const { network, now, lostMs, rules } = this.#parts;
    const sentAt = now();
    const claim = claimOf(call, sentAt);
    call.isSole = false;
    network.send({
      of: 'resume',
      call,
      to: null,
      deliver: (instance, reply: Reply) => instance.resume(claim, reply),
      hear: (answer, from) => {
        if (answer.kind === 'gone') {
          return end(rules.believesGone(call.attachment, answer.attachment) ? 'gone' : 'failed');
        }
        if (answer.kind !== 'lease') return end('failed');
        if (call.phase === 'running') {
          call.renewedAt = sentAt;
          if (answer.lease.attachment >= call.attachment) {
            call.fenceAt = Math.max(call.fenceAt, sentAt - lostMs() + HELD_BY_ANSWER_MS);
          }
        }
        this.#adopt(call, answer.lease, from);
        end('resumed');
      },
    });
  }

  #stop(call: FleetCall): void {
    this.#parts.onGone(call);
    this.finish(call, 'cancelled');
  }

  /** Drops the answer that a call holds its lease by. */
  #dispose(call: FleetCall): void {
    if (call.at !== null) this.#detach(call, call.attachment, call.at);
  }

  #detach(call: FleetCall, attachment: number, from: Instance): void {
    const { leaseId } = call;
    this.#tell(call, from, (instance) => {
      if (call.phase === 'over') this.#hearEnd(call, 'cancelled');
      instance.apply({ kind: 'detach', leaseId, attachment });
    });
  }

  #tell(call: FleetCall, to: Instance | null, deliver: (instance: Instance) => void): void {
    this.#parts.network.send({ of: 'detach', call, to, deliver, hear: () => {} });
  }
}
