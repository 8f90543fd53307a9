import type { GroupEvent } from '../core/events.ts';
import type { GroupState } from '../core/state.ts';
import { lostAt } from '../core/parts/bound.ts';
import { nextWakeAt, step } from '../core/step.ts';
import { slotsHeld } from '../core/stats.ts';
import { instant, type InstantMs } from '../core/words/ids.ts';
import type { Timers } from '../runtime/async.ts';
import { WakeTimer, type Batch } from './batch.ts';
import { settingsOf } from './definition.ts';
import type { DirectoryLink } from './directory-link.ts';
import type { EffectRunner, RowWriter } from './effects.ts';
import { isInUse, type Idleness, type Presence } from './idleness.ts';
import type { Observation } from './observe/observation.ts';
import type { Renewals } from './parked.ts';

/** Events that change nothing in what the directory stores of a resting pool. */
const IS_NO_NEWS: ReadonlySet<GroupEvent['kind']> = new Set(['tick', 'reconfigure', 'move']);

/** Maximum sleep of a pool with leases, so that it notices a suspension. */
const PULSE_MS = 5_000;

/** Delay of a timer that counts as a suspension: the process was frozen, or the wall clock was set forward. */
const HELD_UP_MS = 5_000;

interface ShellParts {
  readonly timers: Timers;
  readonly effects: EffectRunner;
  readonly batch: Batch;
  readonly rows: RowWriter;
  readonly renewals: Renewals;
  readonly loanRenewals: Renewals;
  readonly observation: Observation;
  readonly idleness: Idleness;
  readonly link: DirectoryLink;
  readonly presence: Presence;
  /** Maximum waiters, regardless of the configuration. */
  readonly waitersMax: number;
  readonly onEvent: () => void;
}

/**
 * Runs the turn of each event without interruption: the core decides, its effects become rows and answers, observers
 * are notified, and the timer is set to what is due next.
 */
export class Shell {
  /** The core's state, which only a turn changes, in place. */
  readonly state: GroupState;
  readonly #parts: ShellParts;
  readonly #timer: WakeTimer;

  constructor(state: GroupState, parts: ShellParts) {
    this.state = state;
    this.#parts = parts;
    this.#timer = new WakeTimer(parts.timers, () => this.apply({ kind: 'tick' }));
  }

  now(): InstantMs {
    return instant(this.#parts.timers.clock.now());
  }

  /** How far `now` is ahead of the wall clock. */
  get aheadMs(): number {
    return this.#parts.timers.clock.aheadMs;
  }

  apply(event: GroupEvent): void {
    const { batch, observation, idleness, link, presence, onEvent } = this.#parts;
    const now = this.now();
    if (now >= lostAt(this.state.bound)) this.#parts.rows.giveUpUnlessConfirmed();
    observation.before(now);
    this.#answerDue(now);
    this.#step(event, now);
    const due = observation.after(event, now);
    if (due !== null) batch.soon(due === 'bound');
    idleness.note(this.state, now);
    if (link.isRetired && !isInUse(this.state)) link.listing.leave();
    presence.note(!IS_NO_NEWS.has(event.kind));
    this.arm();
    onEvent();
  }

  /** Applies everything that is due, so that a following read is current. */
  tick(): InstantMs {
    this.apply({ kind: 'tick' });
    return this.now();
  }

  /** Applies another definition. `moved` means that calls may be routed differently, so waiters are routed again. */
  reconfigure(moved: boolean): void {
    const { link, waitersMax } = this.#parts;
    const settings = settingsOf(link.definition, waitersMax, link.partition);
    this.apply({ kind: 'reconfigure', settings });
    if (moved) this.apply({ kind: 'move' });
  }

  arm(): void {
    const { renewals, loanRenewals: prefetchRenewals } = this.#parts;
    const now = this.now();
    const parkedUntil = Math.min(renewals.nextDueAt(), prefetchRenewals.nextDueAt());
    const pulseAt = slotsHeld(this.state) > 0 ? now + PULSE_MS : Infinity;
    this.#timer.arm(Math.min(nextWakeAt(this.state, now), parkedUntil, pulseAt));
  }

  #step(event: GroupEvent, now: InstantMs): void {
    const { effects, observation } = this.#parts;
    const wanted = step(this.state, event, now);
    // Before the effects, so that their writes include it.
    observation.noteStep(now);
    effects.run(wanted);
  }

  /** Handles a late timer before anything expires by the clock. */
  #answerDue(now: InstantMs): void {
    const { renewals, loanRenewals } = this.#parts;
    const lateMs = this.#timer.takeOver();
    if (lateMs === null) return;
    if (lateMs > HELD_UP_MS) this.#step({ kind: 'held_up', lostMs: lateMs }, now);
    renewals.answerDue(now);
    loanRenewals.answerDue(now);
  }
}
