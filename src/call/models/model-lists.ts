import { BoundedMap } from '../../core/parts/bounded-map.ts';
import { pause, type Background } from '../../runtime/background.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import { within } from '../../runtime/within.ts';
import { ASK_TIMEOUT_MS, type Listing } from './ask-models.ts';
import type { Model } from './model-page.ts';

/** How long a whole list is cached, and one that is missing or partial: short enough to heal soon, and below `ASKED_MAX`. */
const KEPT_MS = 60_000;
const FAULTY_KEPT_MS = 7_000;

/** Maximum number of cached lists, and maximum total length of their texts. */
const LISTS_MAX = 1_000;
const CHARS_MAX = 8 * 1_024 * 1_024;

/** Maximum requests for lists of one key at an upstream within `KEPT_MS`: they may differ in other headers. */
const ASKED_MAX = 10;

/** Interval at which a request checks whether another one has read the same list. */
const LOOK_MS = 20;

const NONE: Pick<Listing, 'models' | 'fault'> = { models: [], fault: null };

/** A list that a request is reading. */
interface PendingList {
  readonly since: number;
  soFar: readonly Model[];
}

/** Reads a list, and reports what it has after each page. */
export type FetchModelList = (report: (soFar: readonly Model[]) => void) => Promise<Listing>;

/**
 * A cache of the model lists of upstreams: callers request them as often as they like, and each request would call every
 * upstream. It is in memory and belongs to this isolate.
 */
export class ModelLists {
  readonly #kept = new Map<string, { readonly list: Listing; readonly until: number }>();
  readonly #asked = new BoundedMap<string, { readonly count: number; readonly until: number }>(
    LISTS_MAX,
  );
  readonly #asking = new BoundedMap<string, PendingList>(LISTS_MAX);
  #chars = 0;

  /**
   * Returns the list of a key at an upstream (`whose`) for one kind of request (`variant`), within `waitMs`. What an
   * upstream returns later is cached for the next request. `ask` reads the list.
   */
  async get(
    { whose, variant, waitMs }: { whose: string; variant: string; waitMs: number },
    ask: FetchModelList,
    ctx: Background,
  ): Promise<Listing> {
    const name = `${whose} ${variant}`;
    const until = steadyClock.now() + waitMs;
    let kept = this.#kept.get(name);
    for (;;) {
      const now = steadyClock.now();
      kept = this.#kept.get(name);
      if (kept !== undefined && now < kept.until) return kept.list;
      const asking = this.#asking.get(name);
      // A request whose caller disconnected may never report its end.
      if (asking === undefined || now - asking.since >= ASK_TIMEOUT_MS) break;
      // An upstream that took this long is slow, so no other call waits for it.
      if (now >= Math.min(until, asking.since + waitMs)) return late(asking);
      await pause(LOOK_MS);
    }
    if (!this.#mayAsk(whose)) return tooOften(kept?.list);
    const asking: PendingList = { since: steadyClock.now(), soFar: [] };
    const reading = this.#read(name, asking, ask);
    ctx.waitUntil(reading);
    return within(waitMs, reading).catch(() => late(asking));
  }

  async #read(name: string, asking: PendingList, ask: FetchModelList): Promise<Listing> {
    this.#asking.set(name, asking);
    const list = await ask((soFar) => {
      asking.soFar = soFar;
    });
    if (this.#asking.get(name) === asking) this.#asking.delete(name);
    this.#keep(name, list);
    return list;
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

  #keep(name: string, list: Listing): void {
    this.#drop(name);
    const until = steadyClock.now() + (list.fault === null ? KEPT_MS : FAULTY_KEPT_MS);
    this.#kept.set(name, { list, until });
    this.#chars += list.chars;
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= LISTS_MAX && this.#chars <= CHARS_MAX) break;
      this.#drop(oldest);
    }
  }

  #drop(name: string): void {
    this.#chars -= this.#kept.get(name)?.list.chars ?? 0;
    this.#kept.delete(name);
  }
}

/** The last list, which is over its time, because its key has asked too often for another one. */
function tooOften({ models, fault }: Pick<Listing, 'models' | 'fault'> = NONE): Listing {
  return { models, chars: 0, fault: fault ?? 'asked_too_often' };
}

/** The list of an upstream that is late, with the pages that have come. */
function late({ soFar }: PendingList): Listing {
  return { models: soFar, chars: 0, fault: 'timeout' };
}
