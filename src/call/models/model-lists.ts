import type { Fetcher } from '../../upstream/transfer/fetch-answer.ts';
import { textWithin } from '../../upstream/body/bytes.ts';
import { BoundedMap } from '../../core/parts/bounded-map.ts';
import { pause, within, steadyClock, type Background } from '../../runtime/async.ts';
import { PAGE_MODELS, readModelPage, type Model, type ModelPage } from './model-page.ts';

/** The list of models of each upstream, requested and cached. */

/**
 * Why a list of models is missing or incomplete: one of Headgate's words, `status_` and a status, or the reason of an
 * error.
 */
export type ModelListFault = string;

/** The models that an upstream lists, as far as they were read. */
export interface Listing {
  readonly models: readonly Model[];
  /** Length of its text, in characters. */
  readonly chars: number;
  /** null if the list is complete. */
  readonly fault: ModelListFault | null;
}

/** Timeout of an upstream for all pages of its list, in milliseconds. Callers do not wait that long. */
const ASK_TIMEOUT_MS = 15_000;

/** Maximum length of a list with all its pages. */
const LIST_BYTES_MAX = 4 * 1_024 * 1_024;

const PAGES_MAX = 50;

interface ModelListRequest {
  readonly fetcher: Fetcher;
  readonly url: string;
  readonly headers: Headers;
  readonly dialect: string;
}

/**
 * Requests the models of an upstream, page by page. `report` receives what was read after each page except the last.
 */
export async function askModels(
  request: ModelListRequest,
  report: (soFar: readonly Model[]) => void,
): Promise<Listing> {
  const signal = AbortSignal.timeout(ASK_TIMEOUT_MS);
  const models = new Map<string, Model>();
  let chars = 0;
  let isPartial = false;
  const listed = (fault: ModelListFault | null): Listing => {
    return {
      models: [...models.values()],
      chars,
      fault: fault ?? (isPartial ? 'unreadable' : null),
    };
  };
  // Anthropic lists 20 models per page by default.
  let query: ModelPage['next'] = request.dialect === 'anthropic' ? { limit: PAGE_MODELS } : {};
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const read = await readOne(request, query, LIST_BYTES_MAX - chars, signal);
    if (typeof read === 'string') return listed(read);
    chars += read.chars;
    isPartial ||= read.page.isPartial;
    const before = models.size;
    for (const model of read.page.models) models.set(model.id, model);
    query = read.page.next;
    if (query === null) return listed(null);
    // The upstream ignores the cursor, so another page would be the same.
    if (models.size === before) return listed('unreadable');
    report([...models.values()]);
  }
  return listed('too_long');
}

async function readOne(
  { fetcher, url, headers, dialect }: ModelListRequest,
  query: Readonly<Record<string, string>>,
  bytesMax: number,
  signal: AbortSignal,
): Promise<{ readonly page: ModelPage; readonly chars: number } | ModelListFault> {
  const search = new URLSearchParams(query).toString();
  try {
    // Following a redirect would send the key to another host, so it counts as no list.
    const init = { headers, redirect: 'manual', signal } as const;
    const answer = await fetcher.fetch(search === '' ? url : `${url}?${search}`, init);
    if (!answer.ok) {
      answer.body?.cancel().catch(() => {});
      return `status_${answer.status}`;
    }
    const text = await textWithin(answer, bytesMax);
    if (text === null) return 'too_long';
    const page = readModelPage(parse(text), dialect);
    return page === null ? 'unreadable' : { page, chars: text.length };
  } catch {
    return signal.aborted ? 'timeout' : 'unreachable';
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

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
type FetchModelList = (report: (soFar: readonly Model[]) => void) => Promise<Listing>;

/**
 * A cache of the model lists of upstreams. Callers request them often, and each request would call every upstream. It
 * is in memory and belongs to this isolate.
 */
class ModelLists {
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

export const modelLists = new ModelLists();
