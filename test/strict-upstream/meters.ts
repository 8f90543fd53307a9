/** How an upstream counts what was used within a window. */
export type MeterAlgorithm = 'sliding' | 'bucket' | 'fixed';

/** Something counted. Its amount may be corrected for as long as it counts. */
export interface Charge {
  readonly at: number;
  amount: number;
}

/** Use of one limit. Instants are epoch milliseconds and never go back. */
export interface Meter {
  used(now: number, limit: number): number;
  add(amount: number, now: number, limit: number): Charge;
  /** Makes a charge as large as it really was. */
  correct(charge: Charge, amount: number, now: number, limit: number): void;
  /** Milliseconds until so much more fits, if nothing else is added; 0: it fits now. */
  waitMs(amount: number, now: number, limit: number): number;
  /** Milliseconds until nothing of it is used any more, if nothing is added. */
  resetMs(now: number, limit: number): number;
}

/** Counts exactly what lies within the last `windowMs`: a charge leaves when it is that old. */
class SlidingMeter implements Meter {
  readonly #windowMs: number;
  #log: Charge[] = [];
  /** Where the charges begin that still count. */
  #start = 0;
  #sum = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  used(now: number): number {
    for (let oldest = this.#log[this.#start]; oldest !== undefined;) {
      if (oldest.at > now - this.#windowMs) break;
      this.#sum -= oldest.amount;
      this.#start += 1;
      oldest = this.#log[this.#start];
    }
    if (this.#start > 1_000) {
      this.#log = this.#log.slice(this.#start);
      this.#start = 0;
    }
    return this.#sum;
  }

  add(amount: number, now: number): Charge {
    const charge = { at: now, amount };
    this.#log.push(charge);
    this.#sum += amount;
    return charge;
  }

  correct(charge: Charge, amount: number, now: number): void {
    this.used(now);
    if (charge.at > now - this.#windowMs) this.#sum += amount - charge.amount;
    charge.amount = amount;
  }

  waitMs(amount: number, now: number, limit: number): number {
    let used = this.used(now);
    if (used + amount <= limit) return 0;
    for (let i = this.#start; i < this.#log.length; i += 1) {
      const charge = this.#log[i];
      used -= charge?.amount ?? 0;
      if (used + amount <= limit) return (charge?.at ?? now) + this.#windowMs - now;
    }
    return this.#windowMs;
  }

  resetMs(now: number): number {
    const newest = this.used(now) === 0 ? undefined : this.#log.at(-1);
    return newest === undefined ? 0 : newest.at + this.#windowMs - now;
  }
}

/** A token bucket as large as the limit, refilled evenly; it may go into debt. */
class BucketMeter implements Meter {
  readonly #windowMs: number;
  #used = 0;
  #at = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  used(now: number, limit: number): number {
    this.#used = Math.max(0, this.#used - ((now - this.#at) * limit) / this.#windowMs);
    this.#at = now;
    return this.#used;
  }

  add(amount: number, now: number, limit: number): Charge {
    this.#used = this.used(now, limit) + amount;
    return { at: now, amount };
  }

  correct(charge: Charge, amount: number, now: number, limit: number): void {
    this.#used = Math.max(0, this.used(now, limit) + amount - charge.amount);
    charge.amount = amount;
  }

  waitMs(amount: number, now: number, limit: number): number {
    const over = this.used(now, limit) + amount - limit;
    // What fractions of a token lose to rounding is no reason to wait.
    return over <= 1e-6 ? 0 : limit > 0 ? (over * this.#windowMs) / limit : this.#windowMs;
  }

  resetMs(now: number, limit: number): number {
    return limit > 0 ? (this.used(now, limit) * this.#windowMs) / limit : 0;
  }
}

/** Windows that follow one another from the epoch on; each begins at nothing. */
class FixedMeter implements Meter {
  readonly #windowMs: number;
  #window = 0;
  #used = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  used(now: number): number {
    const window = Math.floor(now / this.#windowMs);
    if (window !== this.#window) this.#used = 0;
    this.#window = window;
    return this.#used;
  }

  add(amount: number, now: number): Charge {
    this.#used = this.used(now) + amount;
    return { at: now, amount };
  }

  correct(charge: Charge, amount: number, now: number): void {
    const used = this.used(now);
    const counts = Math.floor(charge.at / this.#windowMs) === this.#window;
    if (counts) this.#used = used + amount - charge.amount;
    charge.amount = amount;
  }

  waitMs(amount: number, now: number, limit: number): number {
    return this.used(now) + amount <= limit ? 0 : this.#endMs(now);
  }

  resetMs(now: number): number {
    return this.used(now) === 0 ? 0 : this.#endMs(now);
  }

  #endMs(now: number): number {
    return (Math.floor(now / this.#windowMs) + 1) * this.#windowMs - now;
  }
}

/** A meter at which nothing was used yet. */
export function makeMeter(algorithm: MeterAlgorithm, windowMs: number): Meter {
  switch (algorithm) {
    case 'sliding':
      return new SlidingMeter(windowMs);
    case 'bucket':
      return new BucketMeter(windowMs);
    case 'fixed':
      return new FixedMeter(windowMs);
  }
}
