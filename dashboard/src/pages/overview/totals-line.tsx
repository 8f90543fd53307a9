import { groups, now, reportedAtOf } from '../../feed.ts';
import { count, duration, usd } from '../../format.ts';
import { totalsOf } from '../../model/totals.ts';

export function TotalsLine() {
  const totals = totalsOf(
    groups.value.map((group) => group.value),
    reportedAtOf,
    now.value,
  );
  const figures = [
    { name: totals.groups === 1 ? 'group' : 'groups', value: count(totals.groups) },
    { name: `of ${count(totals.slots)} slots in use`, value: count(totals.inUse) },
    { name: 'queued', value: count(totals.waiting) },
    { name: 'longest wait', value: totals.waiting === 0 ? '–' : duration(totals.oldestWaitMs) },
    { name: 'granted in the last hour', value: count(totals.granted) },
    { name: 'rejected in the last hour', value: count(totals.rejected) },
    { name: '429s from upstreams in the last hour', value: count(totals.refused) },
    ...(totals.dayUsd === null ? [] : [{ name: 'today (UTC)', value: usd(totals.dayUsd) }]),
  ];
  return (
    <ul class="totals" aria-label="All groups together">
      {figures.map(({ name, value }) => (
        <li key={name}>
          <b>{value}</b> {name}
        </li>
      ))}
    </ul>
  );
}
