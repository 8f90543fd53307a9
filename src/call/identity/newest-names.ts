/** A set that keeps its newest names; the oldest goes when there is no room. */
export class NewestNames {
  readonly #names = new Set<string>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Makes it the newest, also where it is in already. */
  add(name: string): void {
    this.#names.delete(name);
    const [oldest] = this.#names;
    if (this.#names.size >= this.#max && oldest !== undefined) this.#names.delete(oldest);
    this.#names.add(name);
  }
}
