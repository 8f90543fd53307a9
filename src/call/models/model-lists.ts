import { BoundedMap } from '../../core/parts/bounded-map.ts';
import { pause, within, type Background } from '../../runtime/async.ts';
import { steadyClock } from '../../runtime/clock.ts';
import { ASK_TIMEOUT_MS, type Listing } from './ask-models.ts';
import type { Model } from './model-page.ts';

/**
 * How long a complete list is cached, and a missing or partial one: short enough to recover soon, and within
 * `REQUESTS_MAX`.
 */
const KEPT_MS = 60_000;
const FAULTY_KEPT_MS = 7_000;

/** Maximum number of cached lists, and maximum total length of their texts. */
const LISTS_MAX = 1_000;
const CHARS_MAX = 8 * 1_024 * 1_024;

/** Maximum requests for lists of one key at an upstream within `KEPT_MS`, because they may differ in other headers. */
const REQUESTS_MAX = 10;

/** Interval at which a request checks whether another one has read the same list. */
const LOOK_MS = 20;

const NONE: Pick<Listing, 'models' | 'fault'> = { models: [], fault: null };

interface PendingList {
  readonly since: number;
  soFar: readonly Model[];
}

/** Reads a list, and reports what it has after each page. */
export type FetchModelList = (report: (soFar: readonly Model[]) => void) => Promise<Listing>;

/**
 * A cache of the model lists of upstreams. Callers request them often, and each request would call every upstream. It
 * is in memory and belongs to this isolate.
 */
export class ModelLists {
  readonly #kept = new Map<string, { readonly list: Listing; readonly until: number }>();
  readonly #requests = new BoundedMap<string, { readonly count: number; readonly until: number }>(
    LISTS_MAX,
  );
  readonly #pending = new BoundedMap<string, PendingList>(LISTS_MAX);
  #chars = 0;

  /**
   * Returns the list of a key at an upstream (`owner`) for one kind of request (`variant`), within `waitMs`. What an
   * upstream returns later is cached for the next request. `ask` reads the list.
   */
  async get(
    { owner, variant, waitMs }: { owner: string; variant: string; waitMs: number },
    ask: FetchModelList,
    ctx: Background,
  ): Promise<Listing> {
    const name = `${owner} ${variant}`;
    const until = steadyClock.now() + waitMs;
    let kept = this.#kept.get(name);
    for (;;) {
      const now = steadyClock.now();
      kept = this.#kept.get(name);
      if (kept !== undefined && now < kept.until) return kept.list;
      const pending = this.#pending.get(name);
      // A request whose caller disconnected may never report its end.
      if (pending === undefined || now - pending.since >= ASK_TIMEOUT_MS) break;
      // An upstream that took this long is slow, so no other call waits for it.
      if (now >= Math.min(until, pending.since + waitMs)) return late(pending);
      await pause(LOOK_MS);
    }
    if (!this.#mayAsk(owner)) return tooOften(kept?.list);
    const pending: PendingList = { since: steadyClock.now(), soFar: [] };
    const reading = this.#read(name, pending, ask);
    ctx.waitUntil(reading);
    return within(waitMs, reading).catch(() => late(pending));
  }

  async #read(name: string, pending: PendingList, ask: FetchModelList): Promise<Listing> {
    this.#pending.set(name, pending);
    const list = await ask((soFar) => {
      pending.soFar = soFar;
    });
    if (this.#pending.get(name) === pending) this.#pending.delete(name);
    this.#keep(name, list);
    return list;
  }

  #mayAsk(owner: string): boolean {
    const now = steadyClock.now();
    const known = this.#requests.get(owner);
    const recent = known === undefined || now >= known.until ? null : known;
    if (recent !== null && recent.count >= REQUESTS_MAX) return false;
    const until = recent?.until ?? now + KEPT_MS;
    this.#requests.set(owner, { count: (recent?.count ?? 0) + 1, until });
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

/** The last list, which has expired, because its key has requested lists too often. */
function tooOften({ models, fault }: Pick<Listing, 'models' | 'fault'> = NONE): Listing {
  return { models, chars: 0, fault: fault ?? 'asked_too_often' };
}

/** The list of a slow upstream, with the pages that have arrived. */
function late({ soFar }: PendingList): Listing {
  return { models: soFar, chars: 0, fault: 'timeout' };
}
