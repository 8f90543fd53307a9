import type { Controls } from '../core/controls.ts';
import type { Effect } from '../core/events.ts';
import type { LeaseId } from '../core/words/ids.ts';
import type { Lease } from '../core/state.ts';

/** The rows that a turn writes, in one transaction. */
export interface Writes {
  readonly saved: readonly Lease[];
  readonly dropped: readonly LeaseId[];
  /** Null: the controls' row stays as it is. */
  readonly controls: Controls | null;
}

/** How long a row to delete waits for company: a lost delete only leaves a slot unused for a while. */
const DROP_DELAY_MS = 50;

/**
 * Writes the decisions of one turn in one transaction, and lets nobody hear of a lease before its row
 * is in it. The first decision is written at once, those that come while it is on its way together on
 * the next turn: a commit for each would block the process and cost 2 to 20 times the throughput.
 */
export class Batch {
  readonly #write: (writes: Writes) => void;
  /** False: nothing is written, so nobody waits for it and no timer is set. */
  readonly #isStored: boolean;
  /** Null stands for a row to delete. */
  #rows = new Map<LeaseId, Lease | null>();
  #controls: Controls | null = null;
  #answers: (() => void)[] = [];
  #turnIsOpen = false;
  #dropTimer: ReturnType<typeof setTimeout> | null = null;

  constructor(write: (writes: Writes) => void, isStored: boolean) {
    this.#write = write;
    this.#isStored = isStored;
  }

  /** Notes a row to write or delete. Call `settle` when the turn's decisions are all in. */
  note(effect: Extract<Effect, { kind: 'save' | 'drop' | 'keep' }>): void {
    if (effect.kind === 'keep') this.#controls = effect.controls;
    else if (effect.kind === 'save') this.#rows.set(effect.lease.id, effect.lease);
    else this.#rows.set(effect.leaseId, null);
  }

  /** Runs `answer` once everything noted so far is written. */
  afterWrite(answer: () => void): void {
    this.#answers.push(answer);
  }

  /** Resolves once everything noted so far is written. */
  written(): Promise<void> {
    return new Promise((resolve) => {
      this.afterWrite(resolve);
      this.settle();
    });
  }

  /** Ends a turn: writes now if somebody waits for it and no write was made in this turn yet. */
  settle(): void {
    if (this.#answers.length > 0) {
      if (!this.#turnIsOpen) this.#openTurn();
    } else if (this.#rows.size > 0 || this.#controls !== null) {
      this.soon();
    }
  }

  /** Writes within a moment, together with whatever else comes by then. */
  soon(): void {
    if (!this.#isStored) return this.#flush();
    this.#dropTimer ??= setTimeout(() => this.#flush(), DROP_DELAY_MS);
  }

  #openTurn(): void {
    if (!this.#isStored) return this.#flush();
    this.#turnIsOpen = true;
    this.#flush();
    setTimeout(() => {
      this.#turnIsOpen = false;
      this.settle();
    }, 0);
  }

  #flush(): void {
    if (this.#dropTimer !== null) clearTimeout(this.#dropTimer);
    this.#dropTimer = null;
    const rows = this.#rows;
    const answers = this.#answers;
    const controls = this.#controls;
    this.#rows = new Map();
    this.#controls = null;
    this.#answers = [];
    const saved: Lease[] = [];
    const dropped: LeaseId[] = [];
    for (const [id, lease] of rows) {
      if (lease === null) dropped.push(id);
      else saved.push(lease);
    }
    this.#write({ saved, dropped, controls });
    for (const answer of answers) answer();
  }
}
