/**
 * A map with room for so many entries: a new one takes the place of the oldest. An entry is as old as its
 * last `set`; to look it up does not make it younger.
 */
export class BoundedMap<Key, Value> {
  readonly #entries = new Map<Key, Value>();
  readonly #max: number;

  /** @param max maximum entries, at least 1 */
  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  has(key: Key): boolean {
    return this.#entries.has(key);
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key);
  }

  delete(key: Key): void {
    this.#entries.delete(key);
  }

  /** All entries, the oldest first. */
  entries(): IterableIterator<[Key, Value]> {
    return this.#entries.entries();
  }

  /** Makes another map with the same entries, in the same order. The values are shared. */
  copy(): BoundedMap<Key, Value> {
    const made = new BoundedMap<Key, Value>(this.#max);
    for (const [key, value] of this.#entries) made.#entries.set(key, value);
    return made;
  }

  /** Puts an entry in, the newest from now on. */
  set(key: Key, value: Value): void {
    this.#entries.delete(key);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size < this.#max) break;
      this.#entries.delete(oldest);
    }
    this.#entries.set(key, value);
  }
}

/** A set with room for so many items: a new one takes the place of the one added longest ago. */
export class BoundedSet<Item> {
  readonly #items: BoundedMap<Item, true>;

  /** @param max maximum items, at least 1 */
  constructor(max: number) {
    this.#items = new BoundedMap(max);
  }

  has(item: Item): boolean {
    return this.#items.has(item);
  }

  /** Makes an item the newest, one too that is in already. */
  add(item: Item): void {
    this.#items.set(item, true);
  }
}
