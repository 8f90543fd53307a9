import { BoundedMap } from '../core/parts/bounded-map.ts';
import { pause } from '../runtime/background.ts';
import { steadyClock } from '../runtime/steady-clock.ts';

/** A model as an upstream lists it. */
export interface Model {
  readonly id: string;
}

/** A list and the length of its text. */
export interface ModelList {
  readonly models: readonly Model[];
  readonly chars: number;
}

/** How long a list is cached, also a missing one. */
const KEPT_MS = 60_000;
const NONE_KEPT_MS = 5_000;

/** Maximum number of cached lists, and maximum total length of their texts. */
const LISTS_MAX = 1_000;
const CHARS_MAX = 8 * 1_024 * 1_024;

/** Maximum requests for lists of one key at an upstream within `KEPT_MS`: they may differ in other headers. */
const ASKED_MAX = 10;

/** Interval at which a request checks whether another one has read the same list. */
const LOOK_MS = 20;

interface Kept {
  readonly list: ModelList | null;
  readonly until: number;
}

/**
 * A cache of the model lists of upstreams: callers request them as often as they like, and each request would call every
 * upstream. It is in memory and belongs to this isolate.
 */
export class ModelLists {
  readonly #kept = new Map<string, Kept>();
  readonly #asked = new BoundedMap<string, { readonly count: number; readonly until: number }>(
    LISTS_MAX,
  );
  /** Lists that a request is reading, and since when. */
  readonly #asking = new Map<string, number>();
  #chars = 0;

  /**
   * Returns the list of a key at an upstream (`whose`) for one kind of request (`variant`). `ask` reads it within
   * `timeoutMs`. Null: there is no list, or the key has requested it too often.
   */
  async get(
    whose: string,
    variant: string,
    ask: () => Promise<ModelList | null>,
    timeoutMs: number,
  ): Promise<readonly Model[] | null> {
    const name = `${whose} ${variant}`;
    for (;;) {
      const now = steadyClock.now();
      const kept = this.#kept.get(name);
      if (kept !== undefined && now < kept.until) return kept.list?.models ?? null;
      // A request whose caller disconnected never reports its end.
      if (now - (this.#asking.get(name) ?? -Infinity) >= timeoutMs) break;
      await pause(LOOK_MS);
    }
    if (!this.#mayAsk(whose)) return null;
    this.#asking.set(name, steadyClock.now());
    const list = await ask().catch(() => null);
    this.#asking.delete(name);
    this.#keep(name, list);
    return list?.models ?? null;
  }

  #mayAsk(whose: string): boolean {
    const now = steadyClock.now();
    const known = this.#asked.get(whose);
    const asked = known === undefined || now >= known.until ? null : known;
    if (asked !== null && asked.count >= ASKED_MAX) return false;
    const until = asked?.until ?? now + KEPT_MS;
    this.#asked.set(whose, { count: (asked?.count ?? 0) + 1, until });
    return true;
  }

  #keep(name: string, list: ModelList | null): void {
    this.#drop(name);
    const until = steadyClock.now() + (list === null ? NONE_KEPT_MS : KEPT_MS);
    this.#kept.set(name, { list, until });
    this.#chars += list?.chars ?? 0;
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= LISTS_MAX && this.#chars <= CHARS_MAX) break;
      this.#drop(oldest);
    }
  }

  #drop(name: string): void {
    this.#chars -= this.#kept.get(name)?.list?.chars ?? 0;
    this.#kept.delete(name);
  }
}
