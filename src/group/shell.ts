import type { GroupEvent } from '../core/events.ts';
import type { GroupState } from '../core/state.ts';
import { lostAt } from '../core/parts/bound.ts';
import { nextWakeAt, step } from '../core/step.ts';
import { slotsHeld } from '../core/violations.ts';
import { instant, type InstantMs } from '../core/words/ids.ts';
import type { Timers } from '../runtime/timers.ts';
import type { Batch } from './batch.ts';
import { settingsOf } from './definition.ts';
import type { DirectoryLink } from './directory-link.ts';
import type { EffectRunner } from './effects.ts';
import { isInUse, type Idleness } from './idleness.ts';
import type { Observation } from './observe/observation.ts';
import type { Presence } from './presence.ts';
import type { Renewals } from './renewals.ts';
import type { RowWriter } from './row-writer.ts';
import { WakeTimer } from './wake-timer.ts';

/** Events that change nothing that the directory would not know of a pool that rests. */
const IS_NO_NEWS: ReadonlySet<GroupEvent['kind']> = new Set(['tick', 'reconfigure', 'move']);

/** Longest sleep of a pool with leases, so that it notices when it is held up. */
const PULSE_MS = 5_000;

/**
 * How late a timer must be to have been held up: the process was frozen, or the wall clock set forward.
 */
const HELD_UP_MS = 5_000;

/** The parts of a pool that a turn moves. */
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
  /** Calls that may wait, whatever is configured. */
  readonly waitersMax: number;
  /** Told after every event. */
  readonly onEvent: () => void;
}

/**
 * The turn of a pool, which every event takes, without a pause in it: the core decides, its effects become
 * rows and answers, what watches the pool is told, and the timer is set to what is due next.
 */
export class Shell {
  /** The core's; it is changed in place, and only by a turn. */
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
    if (!isInUse(this.state)) link.leave();
    presence.note(!IS_NO_NEWS.has(event.kind));
    this.arm();
    onEvent();
  }

  /** Applies everything that is due, so that what is read next is true now. */
  tick(): InstantMs {
    this.apply({ kind: 'tick' });
    return this.now();
  }

  /** Applies another definition; `moved`: calls may go another way, so those who wait are sent back. */
  reconfigure(moved: boolean): void {
    const { link, waitersMax } = this.#parts;
    const settings = settingsOf(link.definition, waitersMax, link.partition);
    this.apply({ kind: 'reconfigure', settings });
    if (moved) this.apply({ kind: 'move' });
  }

  /** Sets the timer to what is due next. */
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
    // Before the effects: what they write is to have it.
    observation.hear(now);
    effects.run(wanted);
  }

  /** Does what the timer is late with, before anything that is due by the clock alone ends. */
  #answerDue(now: InstantMs): void {
    const { renewals, loanRenewals } = this.#parts;
    const lateMs = this.#timer.takeOver();
    if (lateMs === null) return;
    if (lateMs > HELD_UP_MS) this.#step({ kind: 'held_up', lostMs: lateMs }, now);
    renewals.answerDue(now);
    loanRenewals.answerDue(now);
  }
}
