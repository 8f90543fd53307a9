/**
 * A map with a maximum number of entries. A new entry replaces the oldest one. Only `set` renews the age of an entry,
 * `get` does not.
 */
export class BoundedMap<Key, Value> {
  readonly #entries = new Map<Key, Value>();
  readonly #max: number;

  /** @param max maximum number of entries, at least 1 */
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

  /** All entries, oldest first. */
  entries(): IterableIterator<[Key, Value]> {
    return this.#entries.entries();
  }

  /** Returns another map with the same entries in the same order. The values are shared. */
  copy(): BoundedMap<Key, Value> {
    const made = new BoundedMap<Key, Value>(this.#max);
    for (const [key, value] of this.#entries) made.#entries.set(key, value);
    return made;
  }

  /** Sets an entry and makes it the newest. */
  set(key: Key, value: Value): void {
    this.#entries.delete(key);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size < this.#max) break;
      this.#entries.delete(oldest);
    }
    this.#entries.set(key, value);
  }
}

/** A set with a maximum number of items. A new item replaces the oldest one. */
export class BoundedSet<Item> {
  readonly #items: BoundedMap<Item, true>;

  /** @param max maximum number of items, at least 1 */
  constructor(max: number) {
    this.#items = new BoundedMap(max);
  }

  has(item: Item): boolean {
    return this.#items.has(item);
  }

  /** Adds an item and makes it the newest, even if it was in the set before. */
  add(item: Item): void {
    this.#items.set(item, true);
  }
}
