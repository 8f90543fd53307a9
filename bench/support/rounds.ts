import { callsFor, streamsAtOnce, type Load } from './load.ts';
import { cpuOfAll } from './process-cpu.ts';
import type { Subject } from './subjects.ts';

/** One question that every subject is asked. */
export interface Scenario {
  readonly title: string;
  readonly callers: number;
  /** Null: small calls, one after the other. Else each caller reads one stream of so many chunks. */
  readonly streamChunks: number | null;
  /** How far apart the chunks of a stream are, each stream at a time of its own. @default all streams at the same times */
  readonly chunkEveryMs?: number;
}

export interface Timing {
  readonly rounds: number;
  /** Turns that a subject gets in one round of small calls. */
  readonly slices: number;
  readonly warmUpMs: number;
  readonly measuredMs: number;
}

export const FULL_TIMING: Timing = { rounds: 5, slices: 4, warmUpMs: 300, measuredMs: 700 };
export const QUICK_TIMING: Timing = { rounds: 1, slices: 1, warmUpMs: 300, measuredMs: 700 };

/** Figures of one subject in one round of one scenario. */
export interface Sample {
  readonly callsPerS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of the subject's processes, in microseconds, for a call or for a chunk of a stream. */
  readonly cpuUs: number;
  /** Part of one core that they used. workerd has one main thread, so near 1 it is what sets the pace. */
  readonly busy: number;
}

/** The samples of one scenario by subject, a round each. */
export type Samples = ReadonlyMap<Subject, readonly Sample[]>;

/** Outcome of one slice. */
interface Slice {
  readonly calls: number;
  readonly seconds: number;
  readonly cpuUs: number;
  readonly latenciesMs: readonly number[];
}

async function measure(subject: Subject, scenario: Scenario, timing: Timing): Promise<Slice> {
  const { callers, streamChunks, chunkEveryMs } = scenario;
  const marks: number[] = [];
  const request = subject.request(streamChunks, chunkEveryMs);
  const load: Load = {
    port: subject.port,
    request: () => request,
    callers,
    mark: () => marks.push(cpuOfAll(subject.pids)),
  };
  const result =
    streamChunks === null
      ? await callsFor(load, timing.warmUpMs, timing.measuredMs)
      : await streamsAtOnce(load);
  const [before = 0, after = 0] = marks;
  return { ...result, cpuUs: after - before };
}

/** The slices of one round as if they were one. */
function joined(slices: readonly Slice[], { streamChunks }: Scenario): Sample {
  const sum = (of: (slice: Slice) => number): number =>
    slices.reduce((total, slice) => total + of(slice), 0);
  const calls = sum((slice) => slice.calls);
  const seconds = sum((slice) => slice.seconds);
  const cpuUs = sum((slice) => slice.cpuUs);
  const latenciesMs = slices.flatMap((slice) => slice.latenciesMs).toSorted((x, y) => x - y);
  return {
    callsPerS: calls / seconds,
    p50Ms: latenciesMs[Math.floor(calls * 0.5)] ?? NaN,
    p99Ms: latenciesMs[Math.floor(calls * 0.99)] ?? NaN,
    cpuUs: cpuUs / (calls * (streamChunks ?? 1)),
    busy: cpuUs / (seconds * 1_000_000),
  };
}

/**
 * Asks every subject in turn, in short slices and round after round, so that a machine which gets
 * slower or busier meanwhile does so for all of them.
 */
export async function runRounds(
  subjects: readonly Subject[],
  scenario: Scenario,
  timing: Timing,
  onRound: () => void = () => {},
): Promise<Samples> {
  const samples = new Map(subjects.map((subject) => [subject, [] as Sample[]]));
  const slicesEach = scenario.streamChunks === null ? timing.slices : 1;
  for (let round = 0; round < timing.rounds; round += 1) {
    const slices = new Map(subjects.map((subject) => [subject, [] as Slice[]]));
    for (let slice = 0; slice < slicesEach; slice += 1) {
      // In the other order each time: what a subject leaves behind is not always met by the same one.
      const turn = slice % 2 === 0 ? [...slices] : [...slices].toReversed();
      for (const [subject, soFar] of turn) soFar.push(await measure(subject, scenario, timing));
    }
    for (const [subject, list] of slices) samples.get(subject)?.push(joined(list, scenario));
    onRound();
  }
  return samples;
}

/** The middle of some values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low = NaN, high = NaN] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (low + high) / 2;
}

/** The value below which that part of some values lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

/** One figure of a subject: the median of its rounds. */
export function typical(samples: Samples, subject: Subject, field: keyof Sample): number {
  return median((samples.get(subject) ?? []).map((sample) => sample[field]));
}

/** How a figure compares to another subject's: the median of the ratios within one round. */
export function ratio(
  samples: Samples,
  subject: Subject,
  base: Subject,
  field: keyof Sample,
): number {
  const bases = samples.get(base) ?? [];
  return median(
    (samples.get(subject) ?? []).map((sample, round) => {
      const other = bases[round];
      return other === undefined ? NaN : sample[field] / other[field];
    }),
  );
}
