import type { StrictSettings } from './strict-settings.ts';

/** Arrivals beyond this are counted but not listed. */
const ARRIVALS_MAX = 20_000;

/** How a call ended. `broken`: the upstream itself cut it, as its behaviour asked. */
export type CallEnd = 'done' | 'refused' | 'aborted' | 'broken';

/** One call, in the order in which the calls' headers arrived. */
export interface StrictArrival {
  readonly index: number;
  readonly path: string;
  /** Epoch milliseconds, with fractions. */
  readonly at: number;
  model: string | null;
  /** The header `x-label`, else the text of the last user message. */
  label: string | null;
  state: 'open' | CallEnd;
  endedAt: number | null;
}

/** What was seen of all calls, or of those of one model. */
export interface StrictTally {
  /** Calls whose request arrived and whose last byte is not out, refused ones included. */
  inFlight: number;
  /** The largest `inFlight` ever. A refused call counts too, so a peak of N means that N was kept. */
  peak: number;
  /** The provider's own counter, which the limit is held against; it may lag behind `inFlight`. */
  admitted: number;
  total: number;
  completed: number;
  rejected429: number;
  /** Calls whose client went away before their end. */
  aborted: number;
}

export interface StrictStats extends StrictTally {
  /** Calls that take no slot at a provider: model lists, token counts, HEAD. */
  readonly uncounted: number;
  readonly arrivals: readonly StrictArrival[];
  readonly models: Readonly<Record<string, StrictTally>>;
}

const emptyTally = (): StrictTally => ({
  inFlight: 0,
  peak: 0,
  admitted: 0,
  total: 0,
  completed: 0,
  rejected429: 0,
  aborted: 0,
});

function enter(tally: StrictTally): void {
  tally.total += 1;
  tally.inFlight += 1;
  tally.peak = Math.max(tally.peak, tally.inFlight);
}

function leave(tally: StrictTally, end: CallEnd): void {
  tally.inFlight -= 1;
  if (end === 'done') tally.completed += 1;
  if (end === 'aborted') tally.aborted += 1;
}

const now = (): number => performance.timeOrigin + performance.now();

/** The counters of a scope, from one reset to the next. */
export class StrictCounts {
  readonly tally = emptyTally();
  readonly models = new Map<string, StrictTally>();
  readonly arrivals: StrictArrival[] = [];
  uncounted = 0;

  stats(): StrictStats {
    return {
      ...this.tally,
      uncounted: this.uncounted,
      arrivals: this.arrivals.map((arrival) => ({ ...arrival })),
      models: Object.fromEntries([...this.models].map(([name, tally]) => [name, { ...tally }])),
    };
  }

  /** A counted call's headers are here. The scope's limit is decided now, in order of arrival. */
  arrive(path: string, settings: StrictSettings): CountedCall {
    return new CountedCall(this, path, settings);
  }
}

/** One call that counts as in flight, from its arrival to its end. */
export class CountedCall {
  /** The limit that it ran into, or null: it was admitted. */
  overLimit: number | null = null;
  readonly #counts: StrictCounts;
  readonly #settings: StrictSettings;
  readonly #arrival: StrictArrival;
  #model: StrictTally | null = null;
  #ended = false;

  constructor(counts: StrictCounts, path: string, settings: StrictSettings) {
    const { arrivals, tally } = counts;
    const index = tally.total;
    this.#counts = counts;
    this.#settings = settings;
    this.#arrival = {
      index,
      path,
      at: now(),
      model: null,
      label: null,
      state: 'open',
      endedAt: null,
    };
    if (arrivals.length < ARRIVALS_MAX) arrivals.push(this.#arrival);
    enter(tally);
    if (settings.limit !== null && tally.admitted >= settings.limit) this.#refuse(settings.limit);
    else tally.admitted += 1;
  }

  /** The body was read, so the model and its own limit are known. */
  named(model: string | null, label: string | null): void {
    this.#arrival.model = model;
    this.#arrival.label = label;
    if (model === null || this.#ended) return;
    const tally = this.#counts.models.get(model) ?? emptyTally();
    this.#counts.models.set(model, tally);
    this.#model = tally;
    enter(tally);
    const limit = this.#settings.limits[model];
    if (this.overLimit !== null) tally.rejected429 += 1;
    else if (limit !== undefined && tally.admitted >= limit) {
      this.#counts.tally.admitted -= 1;
      this.#refuse(limit);
    } else tally.admitted += 1;
  }

  /** Ends the call once; later calls change nothing. */
  end(end: Exclude<CallEnd, 'refused'>, lagMs: number): void {
    if (this.#ended) return;
    this.#ended = true;
    const refused = this.overLimit !== null;
    const state = refused && end === 'done' ? 'refused' : end;
    this.#arrival.state = state;
    this.#arrival.endedAt = now();
    for (const tally of this.#tallies()) leave(tally, state);
    if (refused) return;
    if (lagMs > 0) setTimeout(() => this.#giveBack(), lagMs).unref();
    else this.#giveBack();
  }

  #tallies(): StrictTally[] {
    return this.#model === null ? [this.#counts.tally] : [this.#counts.tally, this.#model];
  }

  #refuse(limit: number): void {
    this.overLimit = limit;
    for (const tally of this.#tallies()) tally.rejected429 += 1;
  }

  #giveBack(): void {
    for (const tally of this.#tallies()) tally.admitted -= 1;
  }
}
