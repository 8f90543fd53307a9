import type { Answered } from './result.ts';

/** The answer of a call that begins before it has one: its caller gets what comes first. */
export class EarlyAnswer {
  readonly #begun = Promise.withResolvers<Answered>();
  #hasBegun = false;

  /** Resolves once the answer has begun. */
  get begun(): Promise<Answered> {
    return this.#begun.promise;
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  begin(answer: Answered): void {
    this.#hasBegun = true;
    this.#begun.resolve(answer);
  }
}
