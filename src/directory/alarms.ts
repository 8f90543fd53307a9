/** One of those who want the object's alarm. */
export interface Alarm {
  /** Epoch milliseconds. */
  set(at: number): void;
  clear(): void;
}

/** The one alarm of an object, shared by several: it goes off for the first of them. */
export class Alarms {
  readonly #storage: Pick<DurableObjectStorage, 'setAlarm' | 'deleteAlarm'>;
  readonly #wanted = new Map<string, number>();

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

  #arm(): void {
    const first = Math.min(...this.#wanted.values());
    const armed =
      first === Infinity
        ? this.#storage.deleteAlarm()
        : this.#storage.setAlarm(Math.max(first, Date.now()));
    armed.catch(() => {});
  }
}
