export interface Alarm {
  /** Epoch milliseconds. */
  set(at: number): void;
  clear(): void;
}

/** Delay after which the alarm counts as lost. An overdue alarm may never fire. */
const LATE_MS = 3_000;

/** Shares the one alarm of an object among several users. It fires at the earliest requested time. */
export class Alarms {
  readonly #storage: Pick<DurableObjectStorage, 'setAlarm' | 'deleteAlarm'>;
  readonly #wanted = new Map<string, number>();
  #armedAt = Infinity;

  constructor(storage: Pick<DurableObjectStorage, 'setAlarm' | 'deleteAlarm'>) {
    this.#storage = storage;
  }

  of(user: string): Alarm {
    return {
      set: (at) => {
        this.#wanted.set(user, at);
        this.#arm();
      },
      clear: () => {
        if (this.#wanted.delete(user)) this.#arm();
      },
    };
  }

  /** Sets the alarm again if it was lost. */
  ensure(): void {
    if (this.#armedAt < Date.now() - LATE_MS) this.#arm();
  }

  #arm(): void {
    const first = Math.min(...this.#wanted.values());
    this.#armedAt = Math.max(first, Date.now());
    const armed =
      first === Infinity ? this.#storage.deleteAlarm() : this.#storage.setAlarm(this.#armedAt);
    armed.catch(() => {});
  }
}
