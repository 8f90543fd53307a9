import { BoundedMap } from '../core/parts/bounded-map.ts';
import { pause } from '../runtime/background.ts';
import { steadyClock } from '../runtime/steady-clock.ts';

/** A model as an upstream lists it. */
export interface Model {
  readonly id: string;
}

/** A list as it was read, and the length of its text. */
export interface ModelList {
  readonly models: readonly Model[];
  readonly chars: number;
}

/** How long a list is kept, and how long it is remembered that there was none. */
const KEPT_MS = 60_000;
const NONE_KEPT_MS = 5_000;

/** Maximum lists that are kept, and maximum of their texts together. */
const LISTS_MAX = 1_000;
const CHARS_MAX = 8 * 1_024 * 1_024;

/** Maximum lists that one key asks an upstream for within `KEPT_MS`: their requests may differ in other headers. */
const ASKED_MAX = 10;

/** How often it is looked whether another request has brought a list that both want. */
const LOOK_MS = 20;

interface Kept {
  readonly list: ModelList | null;
  readonly until: number;
}

/**
 * The lists of models of upstreams, for as long as they are good: callers ask for them as often as they like, and each
 * time would ask every upstream. In memory only, and of this isolate.
 */
export class ModelLists {
  readonly #kept = new Map<string, Kept>();
  readonly #asked = new BoundedMap<string, { readonly count: number; readonly until: number }>(
    LISTS_MAX,
  );
  /** Lists that a request is asking for, and since when. */
  readonly #asking = new Map<string, number>();
  #chars = 0;

  /**
   * Returns the list of a key at an upstream (`whose`), as such a request of it (`variant`) gets it. `ask` reads it in
   * `timeoutMs` at most. Null: there is none, or the key has asked too often.
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
      // A request that its caller left never says that it is over.
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
