import type { AnswerAt } from '../../../src/admin/client.ts';
import { clock, count, duration, usd } from '../format.ts';
import { WAIT_WORDS } from './call-words.ts';

type GroupHistory = AnswerAt<'GET /groups/{name}/history'>;

type HistoryPointView = GroupHistory['points'][number];

/** An event of a group, drawn as a line across its charts. */
export type HistoryMarker = GroupHistory['markers'][number];

export type HistoryView = Pick<GroupHistory, 'from' | 'to' | 'step_s'> & {
  readonly points: readonly HistoryPointView[];
  readonly gaps: readonly Pick<ChartsGap, 'from' | 'to' | 'why'>[];
};

type ChartsGap = GroupHistory['gaps'][number];

export interface ChartLine {
  readonly label: string;
  /** CSS variable of its colour. Dashes also distinguish lines. */
  readonly tone: string;
  readonly dash: readonly number[];
  /** `steps` and `area` hold for a whole step. `line` was measured within it. */
  readonly shape: 'steps' | 'area' | 'line';
  /** One value per step. null means no data. */
  readonly values: readonly (number | null)[];
}

export interface Chart {
  readonly id: string;
  readonly title: string;
  /** Unit of the axis, such as `calls per 10 min`. */
  readonly unit: string;
  readonly format: (value: number) => string;
  /** Allowed distances of axis ticks. null means any. */
  readonly increments: readonly number[] | null;
  /** Legend value while no step is selected: the sum of all steps, or the latest value. */
  readonly atRest: 'sum' | 'last';
  readonly lines: readonly ChartLine[];
}

/** A time without data, in epoch seconds. */
export interface ChartGap {
  readonly from: number;
  readonly to: number;
  /** Label, such as `no data before 14:03`. */
  readonly label: string;
  /** Full sentence with the reason. */
  readonly words: string;
  /** The time that sums cover, such as `since 14:03`. null if the gap is in the middle. */
  readonly covers: string | null;
}

/** All charts of a group, on one time axis. */
export interface Charts {
  /** Start of each step, in epoch seconds. */
  readonly steps: readonly number[];
  /** End of the data in the last step, in epoch seconds. The step may not be complete. */
  readonly end: number;
  /** Oldest first. */
  readonly gaps: readonly ChartGap[];
  readonly charts: readonly Chart[];
  /** Tenants with the most wait time, and with the most slot time, in the whole range. */
  readonly tenants: {
    readonly waited: readonly TenantTime[];
    readonly held: readonly TenantTime[];
  };
}

export interface TenantTime {
  readonly tenant: string;
  readonly ms: number;
}

const SOLID: readonly number[] = [];
const DASHES: readonly (readonly number[])[] = [SOLID, [6, 3], [2, 3], [8, 3, 2, 3]];
const TONES = 8;

/**
 * Charts of a history. The API omits steps without events: they count as zero, have no quantiles, and keep the previous
 * limit. Steps within a gap have no data.
 */
export function chartsOf(history: HistoryView): Charts {
  const stepMs = history.step_s * 1_000;
  const first = Math.floor(Date.parse(history.from) / stepMs) * stepMs;
  const length = Math.max(1, Math.floor((Date.parse(history.to) - first) / stepMs) + 1);
  const byStep = new Map(history.points.map((point) => [Date.parse(point.at), point]));
  const gaps = history.gaps.map(({ from, to }) => [Date.parse(from), Date.parse(to)] as const);
  const isLost = (at: number): boolean => gaps.some(([from, to]) => at < to && at + stepMs > from);
  const points = Array.from({ length }, (_, step): HistoryPointView | 'lost' | undefined => {
    const at = first + step * stepMs;
    return byStep.get(at) ?? (isLost(at) ? 'lost' : undefined);
  });
  const per = `per ${duration(stepMs).replace(/^1 /, '')}`;
  return {
    steps: points.map((_, step) => (first + step * stepMs) / 1_000),
    end: Date.parse(history.to) / 1_000,
    gaps: history.gaps.map((gap) => gapOf(gap, history.to)),
    tenants: {
      waited: longestOf(history.points, (point) => point.tenants_waited),
      held: longestOf(history.points, (point) => point.tenants_held),
    },
    charts: [
      slots(points),
      queued(points),
      waits(points),
      ...waitedFor(points, per),
      { ...decided(points), unit: `calls ${per}` },
      { ...refused(points), unit: `refusals ${per}` },
      ...ofMembers(points, per),
      { ...tokens(points), unit: `tokens ${per}` },
      { ...cost(points), unit: `USD ${per}` },
    ],
  };
}

const GAP_WORDS: Readonly<Record<ChartsGap['why'], string>> = {
  before: 'the group did not exist, or had received no calls.',
  absent: 'the group did not exist.',
  lost: 'the object restarted with calls in flight, and its unwritten data is lost.',
  unreachable: 'no pool of the group responded.',
};

function gapOf({ from, to, why }: HistoryView['gaps'][number], shownTo: string): ChartGap {
  const [begin, end] = [from, to].map((at) => clock(at, Date.parse(shownTo)));
  return {
    from: Date.parse(from) / 1_000,
    to: Date.parse(to) / 1_000,
    label: why === 'before' ? `no data before ${end}` : 'no data',
    words:
      why === 'before'
        ? `No data before ${end}: ${GAP_WORDS[why]}`
        : `No data from ${begin} to ${end}: ${GAP_WORDS[why]}`,
    covers: why === 'before' ? `since ${end}` : null,
  };
}

/** Describes the time that a sum covers. */
export function totalInWords(gaps: readonly Pick<ChartGap, 'covers'>[]): string {
  if (gaps.length === 0) return 'in total';
  const since = gaps.flatMap(({ covers }) => covers ?? []);
  return `in total ${[...since, ...(gaps.length > since.length ? ['excluding gaps'] : [])].join(', ')}`;
}

/** Formats a marker, such as `max_concurrency 5 → 3, by night-shift`. */
export function markerWords({ label, actor }: HistoryMarker): string {
  return actor === null ? label : `${label}, by ${actor}`;
}

/** Value of a line at a step, or its legend value if no step is selected. */
export function valueOf(chart: Chart, line: ChartLine, step: number | null): number | null {
  if (step !== null) return line.values[step] ?? null;
  if (chart.atRest === 'last') return line.values.findLast((value) => value !== null) ?? null;
  if (line.values.every((value) => value === null)) return null;
  return line.values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
}

/** Describes a chart in words, for screen readers. */
export function summaryOf(chart: Chart, gaps: readonly ChartGap[] = []): string {
  const values = chart.lines.map((line) => {
    const most = Math.max(...line.values.map((value) => value ?? 0));
    const value = valueOf(chart, line, null);
    const last = value === null ? 'no data' : chart.format(value);
    const latest = value === null ? last : `latest ${last}`;
    const rest = chart.atRest === 'sum' ? `${last} ${totalInWords(gaps)}` : latest;
    return `${line.label}: ${rest}, at most ${chart.format(most)}`;
  });
  const about = [
    values.length === 0 ? 'None.' : `${values.join('; ')}.`,
    ...gaps.map(({ words }) => words),
  ];
  return `${chart.title}, in ${chart.unit}. ${about.join(' ')}`;
}

/** `lost` means no data. undefined means that nothing happened in the step. */
type Points = readonly (HistoryPointView | 'lost' | undefined)[];

function slots(points: Points): Chart {
  const configured = kept(points, (point) => point.limit_configured);
  const effective = kept(points, (point) => point.limit);
  const isLearned = effective.some((value, step) => value !== configured[step]);
  return {
    id: 'slots',
    title: 'Slots in use and limit',
    unit: 'slots',
    format: count,
    increments: WHOLE,
    atRest: 'last',
    lines: [
      {
        ...LINE,
        label: 'max in use',
        tone: '--accent',
        shape: 'area',
        values: sums(points, (p) => p.in_use_max),
      },
      {
        ...LINE,
        label: 'mean in use',
        tone: '--flowing',
        shape: 'steps',
        values: sums(points, (p) => p.in_use_mean),
      },
      { ...LINE, label: 'limit', tone: '--text', dash: [6, 3], shape: 'steps', values: configured },
      ...(isLearned
        ? [
            {
              ...LINE,
              label: 'learned',
              tone: '--learning',
              dash: [2, 3],
              shape: 'steps' as const,
              values: effective,
            },
          ]
        : []),
    ],
  };
}

function queued(points: Points): Chart {
  const values = sums(points, (point) => point.queued_max);
  return {
    id: 'queued',
    title: 'Max queued',
    unit: 'calls',
    format: count,
    increments: WHOLE,
    atRest: 'last',
    lines: [{ ...LINE, label: 'queued', tone: '--full', shape: 'area', values }],
  };
}

function waits(points: Points): Chart {
  return {
    id: 'waits',
    title: 'Waits of granted calls',
    unit: 'wait time',
    format: duration,
    increments: ROUND_MS,
    atRest: 'last',
    lines: [
      {
        ...LINE,
        label: 'p50',
        tone: '--tenant-0',
        values: measured(points, (p) => p.wait_p50_ms),
      },
      {
        ...LINE,
        label: 'p95',
        tone: '--tenant-1',
        dash: [6, 3],
        values: measured(points, (p) => p.wait_p95_ms),
      },
      {
        ...LINE,
        label: 'p99',
        tone: '--tenant-3',
        dash: [2, 3],
        values: measured(points, (p) => p.wait_p99_ms),
      },
    ],
  };
}

/** A newer release may report other reasons. */
const CAUSES: Readonly<Record<string, string>> = WAIT_WORDS;

/** Waits by reason, if there are any points. */
function waitedFor(points: Points, per: string): Chart[] {
  if (known(points).length === 0) return [];
  const lines = tallies(points, (point) => point.waited_for).map((line) => ({
    ...line,
    label: CAUSES[line.label.replaceAll(' ', '_')] ?? line.label,
  }));
  return [
    {
      id: 'waited-for',
      title: 'Wait reasons',
      unit: `calls ${per}`,
      format: count,
      increments: WHOLE,
      atRest: 'sum',
      lines,
    },
  ];
}

/** Sums times by tenant. Each step reports its top three, so a tenant that is always fourth is missing. */
function longestOf(
  points: readonly HistoryPointView[],
  of: (point: HistoryPointView) => readonly TenantTime[],
): TenantTime[] {
  const times = new Map<string, number>();
  for (const { tenant, ms } of points.flatMap(of)) {
    times.set(tenant, (times.get(tenant) ?? 0) + ms);
  }
  const all = [...times].map(([tenant, ms]) => ({ tenant, ms }));
  return all.toSorted((a, b) => b.ms - a.ms).slice(0, 5);
}

function decided(points: Points): Omit<Chart, 'unit'> {
  const granted = sums(points, (point) => point.granted);
  return {
    id: 'decided',
    title: 'Grants and rejections',
    format: count,
    increments: WHOLE,
    atRest: 'sum',
    lines: [
      { ...LINE, label: 'granted', tone: '--flowing', shape: 'area', values: granted },
      ...tallies(points, (point) => point.rejected),
    ],
  };
}

function refused(points: Points): Omit<Chart, 'unit'> {
  return {
    id: 'refused',
    title: 'Upstream refusals',
    format: count,
    increments: WHOLE,
    atRest: 'sum',
    lines: tallies(points, (point) => point.refusals),
  };
}

/** Charts by member, if the group has members. */
function ofMembers(points: Points, per: string): Chart[] {
  if (known(points).every((point) => point.granted_by_member === undefined)) return [];
  const whole = { format: count, increments: WHOLE };
  return [
    {
      ...whole,
      id: 'member-slots',
      title: 'Max in use by member',
      unit: 'slots',
      atRest: 'last',
      lines: membersIn(points, (point) => point.in_use_max_by_member),
    },
    {
      ...whole,
      id: 'member-granted',
      title: 'Grants by member',
      unit: `calls ${per}`,
      atRest: 'sum',
      lines: membersIn(points, (point) => point.granted_by_member),
    },
    {
      ...whole,
      id: 'member-refused',
      title: 'Refusals by member',
      unit: `refusals ${per}`,
      atRest: 'sum',
      lines: membersIn(points, (point) => point.refused_by_member),
    },
  ];
}

function tokens(points: Points): Omit<Chart, 'unit'> {
  return {
    id: 'tokens',
    title: 'Tokens',
    format: count,
    increments: WHOLE,
    atRest: 'sum',
    lines: [
      {
        ...LINE,
        label: 'input',
        tone: '--tenant-0',
        shape: 'steps',
        values: sums(points, (p) => p.input_tokens),
      },
      {
        ...LINE,
        label: 'output',
        tone: '--tenant-1',
        dash: [6, 3],
        shape: 'steps',
        values: sums(points, (p) => p.output_tokens),
      },
    ],
  };
}

function cost(points: Points): Omit<Chart, 'unit'> {
  const values = sums(points, (point) => point.cost_usd);
  return {
    id: 'cost',
    title: 'Cost',
    format: usd,
    increments: null,
    atRest: 'sum',
    lines: [{ ...LINE, label: 'cost', tone: '--tenant-2', shape: 'area', values }],
  };
}

const WHOLE: readonly number[] = Array.from({ length: 10 }, (_, power) => 10 ** power).flatMap(
  (power) => [power, 2 * power, 5 * power],
);
/** Tick distances for durations, in milliseconds. */
const ROUND_MS: readonly number[] = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000,
  300_000, 600_000, 1_200_000, 1_800_000, 3_600_000,
];

const LINE = { dash: SOLID, shape: 'line' } as const;

function sums(points: Points, of: (point: HistoryPointView) => number): (number | null)[] {
  return points.map((point) => {
    if (point === 'lost') return null;
    return point === undefined ? 0 : of(point);
  });
}

/** Counts of each step. null means no data, or that the group had no members then. */
function counted(
  points: Points,
  of: (point: HistoryPointView) => Readonly<Record<string, number>> | undefined,
): (Readonly<Record<string, number>> | null)[] {
  return points.map((point) => {
    if (point === 'lost') return null;
    return point === undefined ? {} : (of(point) ?? null);
  });
}

function measured(
  points: Points,
  of: (point: HistoryPointView) => number | null,
): (number | null)[] {
  return points.map((point) => (point === undefined || point === 'lost' ? null : of(point)));
}

function known(points: Points): HistoryPointView[] {
  return points.filter((point) => point !== undefined && point !== 'lost');
}

/** Carries the last value through steps without events. */
function kept(points: Points, of: (point: HistoryPointView) => number | null): (number | null)[] {
  let last: number | null = null;
  return points.map((point) => {
    if (point === 'lost') return null;
    if (point !== undefined) last = of(point);
    return last;
  });
}

/** One line for each counted word. */
function tallies(
  points: Points,
  of: (point: HistoryPointView) => Readonly<Record<string, number>> | undefined,
): ChartLine[] {
  return wordsIn(points, of).map((word, index) => ({
    ...stepsOf(points, of, word),
    label: word.replaceAll('_', ' '),
    tone: `--tenant-${(index + 1) % TONES}`,
    dash: DASHES[(index + 1) % DASHES.length] ?? SOLID,
  }));
}

/** One line for each member. A member looks the same in all charts. */
function membersIn(
  points: Points,
  of: (point: HistoryPointView) => Readonly<Record<string, number>> | undefined,
): ChartLine[] {
  const all = wordsIn(points, (point) => ({
    ...point.in_use_max_by_member,
    ...point.granted_by_member,
    ...point.refused_by_member,
  }));
  const here = new Set(wordsIn(points, of));
  return all
    .map((member, index) => ({
      ...stepsOf(points, of, member),
      label: member,
      tone: `--tenant-${index % TONES}`,
      dash: DASHES[index % DASHES.length] ?? SOLID,
    }))
    .filter(({ label }) => here.has(label));
}

/** Counted words in alphabetical order, so that a refresh does not reorder lines. */
function wordsIn(
  points: Points,
  of: (point: HistoryPointView) => Readonly<Record<string, number>> | undefined,
): string[] {
  const words = known(points).flatMap((point) => Object.keys(of(point) ?? {}));
  return [...new Set(words)].toSorted();
}

function stepsOf(
  points: Points,
  of: (point: HistoryPointView) => Readonly<Record<string, number>> | undefined,
  word: string,
) {
  const values = counted(points, of).map((tally) => (tally === null ? null : (tally[word] ?? 0)));
  return { shape: 'steps' as const, values };
}
