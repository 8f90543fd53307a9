export interface CanaryPace {
  /** Time until every isolate of the Worker uses a new configuration. */
  readonly settleMs: number;
  readonly overload: { readonly ratesPerS: readonly number[]; readonly stepMs: number };
  readonly memory: { readonly waiters: readonly number[]; readonly stepMs: number };
  readonly release: { readonly withinMs: number; readonly lookEveryMs: number };
  readonly silence: { readonly waitsMs: readonly number[] };
  readonly upload: { readonly bytes: number; readonly waitsMs: readonly number[] };
  readonly latency: { readonly calls: number; readonly grants: number };
  readonly deploy: {
    readonly waiters: number;
    readonly streams: number;
    /** Maximum wait of the sequential calls. */
    readonly probeMs: number;
    readonly maxMs: number;
    /** How long the load continues after the deploy. */
    readonly afterMs: number;
  };
  readonly isolates: { readonly calls: number; readonly everyMs: number };
  readonly egress: { readonly calls: number; readonly atOnce: number };
  readonly cost: { readonly calls: number };
  readonly feed: { readonly openMs: number };
}

export interface PaceOptions {
  /** Fraction of the default load. */
  readonly load: number;
  readonly long: boolean;
  /** Waits of the checks silence and upload, in seconds. null means the default waits. */
  readonly waitsS: readonly number[] | null;
}

export function paceOf({ load, long, waitsS }: PaceOptions): CanaryPace {
  const part = (count: number): number => Math.max(1, Math.round(count * load));
  const parts = (...counts: readonly number[]): number[] => [...new Set(counts.map(part))];
  const waits = (...usualS: readonly number[]): number[] =>
    (waitsS ?? usualS).map((seconds) => seconds * 1_000);
  return {
    settleMs: 6_000,
    overload: { ratesPerS: parts(100, 200, 400, 800, 1_500, 2_000), stepMs: 2_000 },
    memory: { waiters: parts(250, 500, 1_000, 2_500, 5_000), stepMs: 60_000 },
    release: { withinMs: 10_000, lookEveryMs: 100 },
    silence: { waitsMs: long ? waits(60, 300, 420, 600) : waits(60) },
    upload: { bytes: part(20 * 1_048_576), waitsMs: long ? waits(60, 240, 400) : waits(60) },
    latency: { calls: part(50), grants: part(10) },
    deploy: { waiters: part(500), streams: 4, probeMs: 2_000, maxMs: 1_800_000, afterMs: 15_000 },
    isolates: { calls: part(long ? 3_600 : 60), everyMs: 1_000 },
    egress: { calls: part(100), atOnce: 20 },
    cost: { calls: part(200) },
    feed: { openMs: long ? 720_000 : part(20_000) },
  };
}
