/** The part of an `AbortSignal` that code needs which stops when it aborts. */
export interface AbortSource {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * An abort in plain JavaScript, which follows others. A small call listens for its caller's several times, and each
 * listener of a native signal costs it 2 to 4 µs.
 */
export class PlainAbort implements AbortSource {
  #aborted = false;
  #listeners: (() => void)[] = [];

  constructor(...sources: readonly AbortSource[]) {
    for (const source of sources) {
      if (source.aborted) this.#aborted = true;
      else source.addEventListener('abort', () => this.abort());
    }
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  abort(): void {
    this.#aborted = true;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at !== -1) this.#listeners.splice(at, 1);
  }
}
