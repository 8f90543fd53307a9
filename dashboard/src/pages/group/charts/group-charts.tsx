import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { exact, plural } from '../../../format.ts';
import { groupNamed } from '../../../feed.ts';
import { partitionName } from '../../../model/decoded.ts';
import { isolated } from '../../../model/isolated.ts';
import { linkOf, rangeStartMs, type HistoryRange } from '../../../model/history-range.ts';
import { CopyButton } from '../../../ui/copy-button.tsx';
import { TimeRange } from '../../../ui/time-range.tsx';
import { useQuery } from '../../../ui/use-query.ts';
import { useRange } from '../../../ui/use-range.ts';
import { ChartFigure } from './chart-figure.tsx';
import { MarkerList } from './marker-list.tsx';
import { TenantTimes } from './tenant-times.tsx';
import { useHistory } from './use-history.ts';
import './charts.css';

/** Maximum of gaps described in words. The latest are shown. */
const GAPS_SAID_MAX = 5;

/** History of a group: charts on one axis with one cursor. The link contains the range. */
export function GroupCharts({ name }: { readonly name: string }) {
  const [query, setQuery] = useQuery();
  const { range, showFrom } = useRange();
  const partition = query['partition'];
  const { shown, problem } = useHistory(name, range, partition);
  const step = useSignal<number | null>(null);
  const scheme = useScheme();
  return (
    <section class="charts" aria-labelledby="charts-title">
      <header>
        <h2 id="charts-title">History</h2>
        <TimeRange />
        <Partitions name={name} chosen={partition} choose={(one) => setQuery({ partition: one })} />
        {shown !== null && <Moment steps={shown.steps} step={step} at={query['at']} />}
      </header>
      {problem !== null && <p role="alert">{problem.detail}</p>}
      {shown !== null && shown.missing > 0 && (
        <p role="status">
          {plural(shown.missing, 'partition')} did not respond. Their calls are missing here.
        </p>
      )}
      {shown !== null && shown.gaps.length > 0 && (
        <ul class="help gaps">
          {shown.gaps.slice(-GAPS_SAID_MAX).map(({ from, words }) => (
            <li key={from}>{words}</li>
          ))}
        </ul>
      )}
      <div class="grid" aria-busy={shown === null && problem === null}>
        {shown?.charts.map((chart) => (
          <ChartFigure
            key={chart.id}
            data={{ ...shown, chart }}
            step={step}
            scheme={scheme}
            onZoom={(from, to) => showFrom(1_000 * from, 1_000 * to)}
          />
        ))}
      </div>
      {shown !== null && <TenantTimes tenants={shown.tenants} />}
      {shown !== null && (
        <>
          <MarkerList markers={shown.markers} />
          <p class="help">
            <a href={auditOf(range)}>Configuration changes in this time range</a>
          </p>
        </>
      )}
    </section>
  );
}

/** Link to the whole audit log of the range, because changes elsewhere can affect a group too. */
function auditOf(range: HistoryRange): string {
  const now = Date.now();
  const time = linkOf(rangeStartMs(range, now), range.endMs ?? now);
  return `/admin/audit?${new URLSearchParams(time)}`;
}

/** Slider for the selected step of all charts, for touch and keyboard. */
function Moment({
  steps,
  step,
  at: linked,
}: {
  readonly steps: readonly number[];
  readonly step: Signal<number | null>;
  /** Moment in the link of the page. */
  readonly at: string | undefined;
}) {
  useEffect(() => {
    const atS = Date.parse(linked ?? '') / 1_000;
    const found = steps.findLastIndex((begin) => begin <= atS);
    if (found !== -1) step.value = found;
  }, [linked, steps[0], steps.length]);
  const last = steps.length - 1;
  const at = steps[step.value ?? last] ?? 0;
  const text = step.value === null ? 'now' : exact(new Date(at * 1_000).toISOString());
  return (
    <div class="moment">
      <label>
        <span class="visually-hidden">Moment</span>
        <input
          type="range"
          min={0}
          max={last}
          value={step.value ?? last}
          aria-valuetext={text}
          onInput={({ currentTarget }) => {
            const chosen = Number(currentTarget.value);
            step.value = chosen === last ? null : chosen;
          }}
        />
        <output>{text}</output>
      </label>
      <CopyButton label="Copy link to this moment" text={async () => linkToMoment(steps, at)} />
    </div>
  );
}

/** Link to a moment within a fixed range, so that it stays valid. */
function linkToMoment(steps: readonly number[], at: number): string {
  const url = new URL(location.href);
  const [first = 0] = steps;
  const last = steps.at(-1) ?? first;
  const stepS = (steps[1] ?? first + 60) - first;
  url.searchParams.delete('range');
  const terms = {
    ...linkOf(1_000 * first, 1_000 * (last + stepS)),
    at: linkOf(1_000 * at, 0).from,
  };
  for (const [term, value] of Object.entries(terms)) url.searchParams.set(term, value);
  return url.href;
}

interface PartitionsProps {
  readonly name: string;
  readonly chosen: string | undefined;
  readonly choose: (partition: string) => void;
}

function Partitions({ name, chosen, choose }: PartitionsProps) {
  const names = (groupNamed(name)?.partitions ?? []).flatMap(({ partition }) => partition ?? []);
  if (chosen === undefined && names.length < 2) return null;
  const all = chosen === undefined || names.includes(chosen) ? names : [...names, chosen];
  return (
    <select
      aria-label="Partition"
      value={chosen ?? ''}
      onChange={({ currentTarget }) => choose(currentTarget.value)}
    >
      <option value="">all partitions</option>
      {all.map((one) => (
        <option value={one}>{isolated(partitionName(one))}</option>
      ))}
    </select>
  );
}

function useScheme(): string {
  const [isDark, setDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches);
  useEffect(() => {
    const media = matchMedia('(prefers-color-scheme: dark)');
    const changed = (): void => setDark(media.matches);
    media.addEventListener('change', changed);
    return () => media.removeEventListener('change', changed);
  }, []);
  return isDark ? 'dark' : 'light';
}
