import type { Charge, Meter, MeterAlgorithm } from './meters.ts';
import { makeMeter } from './meters.ts';
import type { StrictRefusal } from './refusal.ts';

/** Dimension of a limit per minute or per day. */
export type RateDimension = 'rpm' | 'tpm' | 'itpm' | 'otpm' | 'rpd' | 'tpd';

const DIMENSIONS: readonly RateDimension[] = ['rpm', 'tpm', 'itpm', 'otpm', 'rpd', 'tpd'];

/** The limits of one model, or of all calls. A field that is missing limits nothing. */
export interface StrictRates extends Readonly<Partial<Record<RateDimension, number>>> {
  /** Length of a minute; shorter ones let a test run in less time. @default 60_000 */
  readonly windowMs?: number;
  /** Length of a day. @default 86_400_000 */
  readonly dayMs?: number;
  /** @default 'sliding' */
  readonly algorithm?: MeterAlgorithm;
  /**
   * Part of the answer that is counted: the request's own maximum at the start (`max_tokens`), the same but
   * corrected at the end (`reserved`), what was written while it is written (`produced`), or nothing.
   * @default 'produced'
   */
  readonly countsOutput?: 'max_tokens' | 'reserved' | 'produced' | 'none';
  /** Whether a refused call counts as a request. @default false */
  readonly countsRefused?: boolean;
  /** Whether input tokens read from a cache count. @default true */
  readonly countsCached?: boolean;
}

const RATE_FIELDS = new Set<string>([
  ...DIMENSIONS,
  'windowMs',
  'dayMs',
  'algorithm',
  'countsOutput',
  'countsRefused',
  'countsCached',
]);

/** By model; `*` holds for all calls of the scope together. Both hold. */
export type RateTable = Readonly<Record<string, StrictRates>>;

/** Throws where a rate has a field that does not exist: it would limit nothing, and say so to nobody. */
export function checkRates(table: RateTable): void {
  for (const field of Object.values(table).flatMap((rates) => Object.keys(rates))) {
    if (!RATE_FIELDS.has(field)) throw new TypeError(`There is no rate named ${field}.`);
  }
}

/** Cost of a call as known at its start. All in tokens. */
export interface StrictCallCost {
  /** The whole prompt, with what is cached of it. */
  readonly input: number;
  readonly cached: number;
  /** The most that the request lets the answer have; 0: it does not say. */
  readonly maxOutput: number;
}

/** One limit and what is used of it. */
export interface LimitState {
  readonly dimension: RateDimension;
  readonly limit: number;
  readonly used: number;
  readonly windowMs: number;
  readonly resetMs: number;
}

/** A limit with its meter. */
interface Gauge {
  readonly dimension: RateDimension;
  readonly limit: number;
  readonly windowMs: number;
  readonly rates: StrictRates;
  readonly meter: Meter;
}

const takesOutput = (dimension: RateDimension): boolean => /^o?tp/.test(dimension);

/** The tokens that count at the start, by the rules of a model. */
function tokensAtStart(
  rates: StrictRates,
  cost: StrictCallCost,
): { input: number; output: number } {
  const { countsOutput = 'produced', countsCached = true } = rates;
  const reserves = countsOutput === 'max_tokens' || countsOutput === 'reserved';
  return {
    input: countsCached ? cost.input : cost.input - cost.cached,
    output: reserves ? cost.maxOutput : 0,
  };
}

function amountOf({ dimension, rates }: Gauge, cost: StrictCallCost): number {
  if (dimension === 'rpm' || dimension === 'rpd') return 1;
  const { input, output } = tokensAtStart(rates, cost);
  return (dimension === 'otpm' ? 0 : input) + (takesOutput(dimension) ? output : 0);
}

function kindOf({ dimension, limit }: Gauge, requested: number): StrictRefusal['kind'] {
  const countsRequests = dimension === 'rpm' || dimension === 'rpd';
  if (requested > limit && !countsRequests) return 'never_fits';
  if (dimension === 'rpd' || dimension === 'tpd') return 'long_window';
  return countsRequests ? 'requests' : 'tokens';
}

/** The rate limits of a scope: all that a call runs into are taken in one step, or none. */
export class StrictRateLimiter {
  readonly #meters = new Map<string, Meter>();

  /** Takes a call, or says why not. */
  admit(
    model: string | null,
    table: RateTable,
    cost: StrictCallCost,
    now: number,
  ): StrictAdmission {
    const gauges = this.#gauges(model, table);
    const refusals = gauges.flatMap((gauge) => {
      // Output that is counted as it is produced needs room for one token at least.
      const requested = Math.max(1, amountOf(gauge, cost));
      const { dimension, limit, meter } = gauge;
      const waitMs = meter.waitMs(requested, now, limit);
      const kind = kindOf(gauge, requested);
      if (waitMs === 0 && kind !== 'never_fits') return [];
      const used = meter.used(now, limit);
      return [{ kind, dimension, model, limit, used, requested, waitMs, at: now }];
    });
    const never = refusals.find(({ kind }) => kind === 'never_fits');
    const longest = refusals.toSorted((a, b) => b.waitMs - a.waitMs)[0];
    if (never !== undefined) return { refusal: { ...never, waitMs: null }, hold: null };
    if (longest !== undefined) return { refusal: longest, hold: null };
    const rates = table[model ?? '*'] ?? table['*'] ?? {};
    return { refusal: null, hold: new RateHold(gauges, rates, cost, now) };
  }

  /** Counts a refused call where refused calls count. */
  countRefused(model: string | null, table: RateTable, now: number): void {
    for (const { dimension, limit, rates, meter } of this.#gauges(model, table)) {
      if (rates.countsRefused && dimension.startsWith('rp')) meter.add(1, now, limit);
    }
  }

  /** Every limit of a model; where one of all calls is tighter, that. */
  states(model: string | null, table: RateTable, now: number): LimitState[] {
    const tightest = new Map<RateDimension, LimitState>();
    for (const { dimension, limit, windowMs, meter } of this.#gauges(model, table)) {
      const used = meter.used(now, limit);
      const known = tightest.get(dimension);
      if (known !== undefined && known.limit - known.used <= limit - used) continue;
      const resetMs = meter.resetMs(now, limit);
      tightest.set(dimension, { dimension, limit, used, windowMs, resetMs });
    }
    return [...tightest.values()];
  }

  #gauges(model: string | null, table: RateTable): Gauge[] {
    const names = model === null || model === '*' ? ['*'] : ['*', model];
    return names.flatMap((name) => {
      const rates = table[name] ?? {};
      const { windowMs: minuteMs = 60_000, dayMs = 86_400_000, algorithm = 'sliding' } = rates;
      return DIMENSIONS.flatMap((dimension) => {
        const limit = rates[dimension];
        if (limit === undefined) return [];
        const windowMs = dimension.endsWith('d') ? dayMs : minuteMs;
        const key = `${name} ${dimension} ${algorithm} ${windowMs}`;
        const meter = this.#meters.get(key) ?? makeMeter(algorithm, windowMs);
        this.#meters.set(key, meter);
        return [{ dimension, limit, windowMs, rates, meter }];
      });
    });
  }
}

/** Exactly one of the two is set. */
export type StrictAdmission =
  | { readonly refusal: StrictRefusal; readonly hold: null }
  | { readonly refusal: null; readonly hold: RateHold };

/** Hold of an admitted call on the limits, to which its answer adds. */
export class RateHold {
  readonly #taken: readonly { readonly gauge: Gauge; readonly charge: Charge }[];
  readonly #rates: StrictRates;
  readonly #cost: StrictCallCost;
  #produced = 0;
  #settled = false;

  constructor(gauges: readonly Gauge[], rates: StrictRates, cost: StrictCallCost, now: number) {
    this.#rates = rates;
    this.#cost = cost;
    this.#taken = gauges.map((gauge) => ({
      gauge,
      charge: gauge.meter.add(amountOf(gauge, cost), now, gauge.limit),
    }));
  }

  /** The tokens that count, by the rules of the call's model. */
  get countedTokens(): number {
    const { countsOutput = 'produced' } = this.#rates;
    const corrected = countsOutput === 'reserved' && this.#settled;
    const { input, output } = tokensAtStart(this.#rates, this.#cost);
    return input + (countsOutput === 'produced' || corrected ? this.#produced : output);
  }

  /** The answer has so many tokens more. */
  produce(tokens: number, now: number): void {
    this.#produced += tokens;
    for (const { gauge } of this.#taken) {
      const { dimension, limit, rates, meter } = gauge;
      const counts = (rates.countsOutput ?? 'produced') === 'produced' && takesOutput(dimension);
      if (counts && tokens > 0) meter.add(tokens, now, limit);
    }
  }

  /** The call is over: what was reserved becomes what was produced. */
  settle(now: number): void {
    if (this.#settled) return;
    this.#settled = true;
    for (const { gauge, charge } of this.#taken) {
      const { dimension, limit, rates, meter } = gauge;
      if (rates.countsOutput !== 'reserved' || !takesOutput(dimension)) continue;
      const amount = charge.amount - this.#cost.maxOutput + this.#produced;
      meter.correct(charge, amount, now, limit);
    }
  }
}
