import type { RefusalForm, StrictRefusal, StrictRefusalKind } from './refusal.ts';
import type { StrictSettings } from './settings.ts';
import type { SeenSocket } from './sockets/seen.ts';

/** Arrivals and refusals beyond this are counted but not listed. */
const LISTED_MAX = 20_000;

/** How a call ended. `broken`: the upstream itself cut it, as its behaviour asked. */
export type CountedCallEnd = 'done' | 'refused' | 'aborted' | 'broken';

/** One call, in the order in which the calls' headers arrived. */
export interface StrictArrival {
  readonly index: number;
  readonly path: string;
  /** The key that it came with; null: none. */
  readonly key: string | null;
  /** Epoch milliseconds, with fractions. */
  readonly at: number;
  model: string | null;
  /** The header `x-label`, else the text of the last user message. */
  label: string | null;
  state: 'open' | CountedCallEnd;
  endedAt: number | null;
  /** Reason for which the call was refused. */
  refusedAs: StrictRefusalKind | null;
  /** Tokens of the prompt, from the grant on. */
  inputTokens: number;
  /** Tokens of the answer that went out so far. */
  outputTokens: number;
}

/** One refusal, in the order in which they were given. */
export interface StrictSeenRefusal {
  /** Epoch milliseconds, with fractions. */
  readonly at: number;
  readonly kind: StrictRefusalKind;
  readonly model: string | null;
}

/** Tally of all calls, or of those of one model. */
export interface StrictTally {
  /** Calls whose request arrived and whose last bytes do not go out yet, refused ones included. */
  inFlight: number;
  /** The largest `inFlight` ever. A refused call counts too, so a peak of N means that N was kept. */
  peak: number;
  /** The provider's own counter, which the limit is held against; it may lag behind `inFlight`. */
  admitted: number;
  total: number;
  completed: number;
  /** Calls that no limit and no failure that was asked for refused. */
  granted: number;
  /** Calls refused for a reason of `refused`, with status 429. */
  rejected429: number;
  /** Refused calls, whichever status they got. */
  refused: Partial<Record<StrictRefusalKind, number>>;
  /** Tokens of the granted calls' prompts. */
  inputTokens: number;
  /** Tokens of the answers that went out. */
  outputTokens: number;
  /** Tokens as the rate limits of the call's model count them. */
  countedTokens: number;
  /** Calls whose client went away before their end. */
  aborted: number;
}

export interface StrictStats extends StrictTally {
  /** Calls that take no slot at a provider: model lists, token counts, HEAD. */
  readonly uncounted: number;
  readonly arrivals: readonly StrictArrival[];
  readonly refusals: readonly StrictSeenRefusal[];
  readonly models: Readonly<Record<string, StrictTally>>;
  readonly accounts: Readonly<Record<string, StrictTally>>;
  /** By the key that calls came with. */
  readonly keys: Readonly<Record<string, StrictTally>>;
  /** Calls that are a whole WebSocket, from the upgrade to its close; in the tally of all calls too. */
  readonly sessions: StrictTally;
  /** Calls that are one turn of a WebSocket; in the tally of all calls too. */
  readonly turns: StrictTally;
  /** WebSockets that were accepted, of whichever kind, in the order of their upgrades. */
  readonly sockets: readonly SeenSocket[];
}

/** One call of a WebSocket: the whole of it, or a turn. */
type SocketCall = 'sessions' | 'turns';

const emptyTally = (): StrictTally => ({
  inFlight: 0,
  peak: 0,
  admitted: 0,
  total: 0,
  completed: 0,
  granted: 0,
  rejected429: 0,
  refused: {},
  inputTokens: 0,
  outputTokens: 0,
  countedTokens: 0,
  aborted: 0,
});

function enter(tally: StrictTally): void {
  tally.total += 1;
  tally.inFlight += 1;
  tally.peak = Math.max(tally.peak, tally.inFlight);
}

function leave(tally: StrictTally, end: CountedCallEnd): void {
  tally.inFlight -= 1;
  if (end === 'done') tally.completed += 1;
  if (end === 'aborted') tally.aborted += 1;
}

function tallyOf(tallies: Map<string, StrictTally>, name: string): StrictTally {
  const tally = tallies.get(name) ?? emptyTally();
  tallies.set(name, tally);
  return tally;
}

const copyOf = (tally: StrictTally): StrictTally => ({ ...tally, refused: { ...tally.refused } });

/** Epoch milliseconds, with fractions; it never goes back. */
export const strictNow = (): number => performance.timeOrigin + performance.now();

/** The counters of a scope, from one reset to the next. */
export class StrictCounts {
  readonly tally = emptyTally();
  readonly models = new Map<string, StrictTally>();
  readonly accounts = new Map<string, StrictTally>();
  readonly keys = new Map<string, StrictTally>();
  readonly sessions = emptyTally();
  readonly turns = emptyTally();
  readonly sockets: SeenSocket[] = [];
  readonly arrivals: StrictArrival[] = [];
  readonly refusals: StrictSeenRefusal[] = [];
  uncounted = 0;

  stats(): StrictStats {
    return {
      ...copyOf(this.tally),
      uncounted: this.uncounted,
      arrivals: this.arrivals.map((arrival) => ({ ...arrival })),
      refusals: [...this.refusals],
      models: Object.fromEntries([...this.models].map(([name, tally]) => [name, copyOf(tally)])),
      accounts: Object.fromEntries(
        [...this.accounts].map(([name, tally]) => [name, copyOf(tally)]),
      ),
      keys: Object.fromEntries([...this.keys].map(([key, tally]) => [key, copyOf(tally)])),
      sessions: copyOf(this.sessions),
      turns: copyOf(this.turns),
      sockets: this.sockets.map((socket) => ({ ...socket, messages: [...socket.messages] })),
    };
  }

  /** A counted call's headers are here. The scope's limit is decided now, in order of arrival. */
  arrive(path: string, key: string | null, settings: StrictSettings): CountedCall {
    return new CountedCall(this, path, key, settings);
  }
}

/** One call that counts as in flight, from its arrival to its end. */
export class CountedCall {
  /** The limit of concurrency that it ran into, or null: it was admitted. */
  overLimit: number | null = null;
  readonly #counts: StrictCounts;
  readonly #arrival: StrictArrival;
  /** Tallies that it counts in: the scope's, its key's, and its model's once that is known. */
  readonly #tallies: StrictTally[];
  /** Where it has a slot. */
  #slots: StrictTally[] = [];
  #ended = false;

  constructor(
    counts: StrictCounts,
    path: string,
    key: string | null,
    { limit, limitsByKey }: StrictSettings,
  ) {
    const { arrivals, tally } = counts;
    this.#counts = counts;
    this.#tallies = [tally];
    this.#arrival = {
      index: tally.total,
      path,
      key,
      at: strictNow(),
      model: null,
      label: null,
      state: 'open',
      endedAt: null,
      refusedAs: null,
      inputTokens: 0,
      outputTokens: 0,
    };
    if (arrivals.length < LISTED_MAX) arrivals.push(this.#arrival);
    enter(tally);
    if (limit !== null && tally.admitted >= limit) this.overLimit = limit;
    else this.#takeSlot(tally);
    if (key !== null) this.#countIn(tallyOf(counts.keys, key), limitsByKey[key] ?? null);
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The key says whose call it is, so that account's limit is known. */
  ofAccount(account: string, { accountLimit }: StrictSettings): void {
    this.#countIn(tallyOf(this.#counts.accounts, account), accountLimit);
  }

  /** It is a call of a WebSocket, of which there may be a limit of their own. */
  ofSocket(kind: SocketCall, { sessionLimit, turnLimit }: StrictSettings): void {
    this.#countIn(this.#counts[kind], kind === 'sessions' ? sessionLimit : turnLimit);
  }

  /** The body was read, so the model and its own limit are known. */
  named(model: string | null, label: string | null, { limits }: StrictSettings): void {
    this.#arrival.model = model;
    this.#arrival.label = label;
    if (model === null || this.#ended) return;
    this.#countIn(tallyOf(this.#counts.models, model), limits[model] ?? null);
  }

  /** Counts the call as one of a model, a key, an account or a kind, which may have a limit of its own. */
  #countIn(tally: StrictTally, limit: number | null): void {
    this.#tallies.push(tally);
    enter(tally);
    if (this.overLimit !== null) return;
    if (limit !== null && tally.admitted >= limit) {
      this.overLimit = limit;
      this.#giveBack();
    } else this.#takeSlot(tally);
  }

  /** The call is refused: it has no slot any more, whatever it had. */
  refuse({ kind, model, at }: StrictRefusal, { status }: RefusalForm): void {
    this.#giveBack();
    this.#arrival.refusedAs = kind;
    const { refusals } = this.#counts;
    if (refusals.length < LISTED_MAX) refusals.push({ at, kind, model });
    for (const tally of this.#tallies) {
      tally.refused[kind] = (tally.refused[kind] ?? 0) + 1;
      if (status === 429) tally.rejected429 += 1;
    }
  }

  /** The call is granted, with so many tokens of its prompt. */
  grant(inputTokens: number): void {
    this.#arrival.inputTokens = inputTokens;
    for (const tally of this.#tallies) {
      tally.granted += 1;
      tally.inputTokens += inputTokens;
    }
  }

  /** Counts tokens of the answer as they go out. */
  produce(outputTokens: number): void {
    this.#arrival.outputTokens += outputTokens;
    for (const tally of this.#tallies) tally.outputTokens += outputTokens;
  }

  /** The rate limits count so many tokens more, or fewer. */
  count(tokens: number): void {
    for (const tally of this.#tallies) tally.countedTokens += tokens;
  }

  /** Ends the call once; later calls change nothing. */
  end(end: Exclude<CountedCallEnd, 'refused'>, lagMs: number): void {
    if (this.#ended) return;
    this.#ended = true;
    const refused = this.overLimit !== null || this.#arrival.refusedAs !== null;
    const state = refused && end === 'done' ? 'refused' : end;
    this.#arrival.state = state;
    this.#arrival.endedAt = strictNow();
    for (const tally of this.#tallies) leave(tally, state);
    if (lagMs > 0) setTimeout(() => this.#giveBack(), lagMs).unref();
    else this.#giveBack();
  }

  #takeSlot(tally: StrictTally): void {
    tally.admitted += 1;
    this.#slots.push(tally);
  }

  #giveBack(): void {
    for (const tally of this.#slots) tally.admitted -= 1;
    this.#slots = [];
  }
}
