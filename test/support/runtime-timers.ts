import { vi } from 'vitest';

interface Timer {
  readonly id: number;
  /** Wall-clock time at which it is due. */
  readonly at: number;
  readonly run: () => void;
}

/**
 * The timers of one object as workerd keeps them: ordered by the wall clock, and only the first one measured by a steady
 * clock. When the first one fires or is cleared, the delay of the next one is computed by the wall clock.
 */
export class RuntimeTimers {
  #steadyMs = 0;
  #wallMs = Date.UTC(2026, 0, 1);
  #timers: Timer[] = [];
  #first: Timer | undefined;
  #firstAt = Infinity;
  #made = 0;

  /** Milliseconds that have passed. */
  get passedMs(): number {
    return this.#steadyMs;
  }

  /** Replaces the timers and the clock of this process until the mocks are restored. */
  install(): void {
    vi.spyOn(Date, 'now').mockImplementation(() => this.#wallMs);
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, ms = 0) => {
      this.#made += 1;
      this.#timers.push({ id: this.#made, at: this.#wallMs + ms, run });
      this.#measureFirst();
      return this.#made;
    }) as unknown as typeof setTimeout);
    vi.spyOn(globalThis, 'clearTimeout').mockImplementation((id) => {
      this.#remove(Number(id));
    });
  }

  setBack(ms: number): void {
    this.#wallMs -= ms;
  }

  /** Advances time and fires due timers. */
  pass(ms: number): void {
    const until = this.#steadyMs + ms;
    while (this.#first !== undefined && this.#firstAt <= until) {
      const { id, run } = this.#first;
      this.#moveTo(Math.max(this.#steadyMs, this.#firstAt));
      run();
      this.#remove(id);
    }
    this.#moveTo(until);
  }

  #moveTo(steadyMs: number): void {
    this.#wallMs += steadyMs - this.#steadyMs;
    this.#steadyMs = steadyMs;
  }

  #remove(id: number): void {
    this.#timers = this.#timers.filter((timer) => timer.id !== id);
    this.#measureFirst();
  }

  #measureFirst(): void {
    const [first] = this.#timers.toSorted((a, b) => a.at - b.at || a.id - b.id);
    if (first === this.#first) return;
    this.#first = first;
    this.#firstAt = first === undefined ? Infinity : this.#steadyMs + first.at - this.#wallMs;
  }
}
