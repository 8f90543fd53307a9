import { GAUGES, type GaugeRow } from '../../../../src/contract/gauges.ts';
import { api } from '../../api.ts';
import { groupNamed, version } from '../../feed.ts';
import { count, duration } from '../../format.ts';
import { scopeWords } from '../../model/scope-words.ts';
import { suggestedWords } from '../../model/suggestions.ts';
import type { GroupView } from '../../model/status.ts';
import { useAnswer } from '../../ui/use-answer.ts';
import { When } from '../../ui/when.tsx';
import { Figure } from './figure.tsx';
import { PartitionRows } from './partition-rows.tsx';
import { RateBars } from './rate-bars.tsx';
import { SpendBars } from './spend-bars.tsx';

const SOURCES: Readonly<Record<GroupView['limit']['source'], string>> = {
  configured: 'configured',
  built_in: 'from the table of known limits',
  unknown: 'assumed, because it is unknown',
  learned: 'learned from the upstream',
};

/** Figures of a group and of its partitions, from the live feed. */
export function GroupFigures({ name }: { readonly name: string }) {
  const group = groupNamed(name);
  if (group === undefined) return null;
  return (
    <>
      <Figures group={group} />
      {group.partitions.length > 0 && <PartitionRows group={group} />}
    </>
  );
}

function Figures({ group }: { readonly group: GroupView }) {
  const { name, kind } = group;
  // The status has no budgets and no burst.
  const [answer] = useAnswer(
    async () => (kind === 'configured' ? api('GET /groups/{name}', { params: { name } }) : null),
    [name, kind, version.value],
  );
  const config = answer?.ok === true ? answer.body : null;
  const { limit } = group;
  return (
    <dl class="figures">
      <Figure name={group.partitions.length > 1 ? 'Limit of each partition' : 'Limit'}>
        <b>{count(limit.effective)}</b> {SOURCES[limit.source]}
        {limit.source === 'learned' &&
          limit.configured !== null &&
          `, ${limit.configured} configured`}
      </Figure>
      <Figure name="Wait in the last five minutes">
        p50 <b>{duration(group.wait_p50_ms)}</b> p95 <b>{duration(group.wait_p95_ms)}</b>
      </Figure>
      <Figure name="Granted in the last hour">
        <b>{count(group.last_hour.granted)}</b>
        {group.dry_run &&
          `; ${count(group.would_wait_total)} would have waited since the object started`}
      </Figure>
      <Figure name="Rejected in the last hour">
        <Counts of={group.last_hour.rejected} />
      </Figure>
      <Figure name="Refused by the upstream in the last hour">
        <Counts of={group.last_hour.refusals} />
      </Figure>
      {group.paused_until !== null && (
        <Figure name={stopped('Upstream is backing off', group)}>
          ends <When at={group.paused_until} />
          {typeof group.pause?.probe_at === 'string' && (
            <>
              {', next probe '}
              <When at={group.pause.probe_at} />
            </>
          )}
          {typeof group.pause?.message === 'string' && (
            <>
              {': '}
              <bdi>{group.pause.message}</bdi>
            </>
          )}
        </Figure>
      )}
      <Figure name={stopped('Breaker', group)}>
        {group.breaker === 'half_open' ? 'half open: one call probes the upstream' : group.breaker}
        {group.breaker_until !== null && (
          <>
            {', probes '}
            <When at={group.breaker_until} />
          </>
        )}
      </Figure>
      <Oddities group={group} />
      {group.rates !== null && (
        <RateBars rates={group.rates} burst={config?.limits.burst ?? null} />
      )}
      {group.limits_seen !== undefined && (
        <Figure name="Limits seen in headers">
          {group.limits_seen.map((seen) => (
            <span class="count" key={`${seen.upstream} ${seen.model ?? ''}`}>
              <b>{suggestedWords(seen.limits)}</b> <bdi>{seen.model ?? seen.upstream}</bdi>
            </span>
          ))}
        </Figure>
      )}
      {group.spend !== null && (
        <SpendBars spend={group.spend} budget={config?.limits.budget_usd ?? null} />
      )}
      {group.overlaps_with.length > 0 && (
        <Figure name="Shares calls with">
          {group.overlaps_with.map((other) => (
            <span class="count" key={other}>
              <a href={`/admin/groups/${encodeURIComponent(other)}`}>{other}</a>
            </span>
          ))}
        </Figure>
      )}
    </dl>
  );
}

/** Name of a figure, with the calls it applies to if these are not all calls. */
function stopped(name: string, { about }: GroupView): string {
  return about === undefined ? name : `${name} (${scopeWords(about)})`;
}

const UNUSUAL = Object.entries<Pick<GaugeRow, 'shape' | 'unusual'>>(GAUGES).flatMap(
  ([name, { unusual }]) => (unusual === undefined ? [] : [{ name, says: unusual }]),
);

function Oddities({ group }: { readonly group: GroupView }) {
  const figures: Readonly<Record<string, unknown>> = group;
  const odd = UNUSUAL.map(({ name, says }) => ({ n: Number(figures[name]), says })).filter(
    ({ n }) => n > 0,
  );
  if (odd.length === 0) return null;
  return (
    <Figure name="Unusual events since the object started">
      {odd.map(({ n, says }) => (
        <span class="count" key={says}>
          <b>{count(n)}</b> {says}
        </span>
      ))}
    </Figure>
  );
}

function Counts({ of }: { readonly of: Readonly<Record<string, number>> }) {
  const counts = Object.entries(of).toSorted(([, a], [, b]) => b - a);
  if (counts.length === 0) return <>none</>;
  return (
    <>
      {counts.map(([name, n]) => (
        <span class="count" key={name}>
          <b>{count(n)}</b> {name}
        </span>
      ))}
    </>
  );
}
