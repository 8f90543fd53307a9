/** One of those who want the object's alarm. */
export interface Alarm {
  /** Epoch milliseconds. */
  set(at: number): void;
  clear(): void;
}

/** How late the alarm may be before it counts as lost: one that is overdue may never go off. */
const LATE_MS = 3_000;

/** The one alarm of an object, shared by several: it goes off for the first of them. */
export class Alarms {
  readonly #storage: Pick<DurableObjectStorage, 'setAlarm' | 'deleteAlarm'>;
  readonly #wanted = new Map<string, number>();
  #armedAt = Infinity;

  constructor(storage: Pick<DurableObjectStorage, 'setAlarm' | 'deleteAlarm'>) {
    this.#storage = storage;
  }

  of(who: string): Alarm {
    return {
      set: (at) => {
        this.#wanted.set(who, at);
        this.#arm();
      },
      clear: () => {
        if (this.#wanted.delete(who)) this.#arm();
      },
    };
  }

  /** Arms the alarm again if it was lost. */
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
