import type { Answered } from './result.ts';

/** The answer to a call that begins before the upstream has responded. */
export class EarlyAnswer {
  readonly #begun = Promise.withResolvers<Answered>();
  #hasBegun = false;

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
