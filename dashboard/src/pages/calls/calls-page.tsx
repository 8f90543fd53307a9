import { groups } from '../../feed.ts';
import { exact, plural } from '../../format.ts';
import { TimeRange } from '../../ui/time-range.tsx';
import { useQuery } from '../../ui/use-query.ts';
import { CallsForm } from './calls-form.tsx';
import { FoundLine } from './found-line.tsx';
import { Refusals } from './refusals.tsx';
import { useCalls } from './use-calls.ts';
import '../../ui/call-lines.css';
import './calls.css';

const GROUPS_SHOWN = 20;

/** Default range. It is the default retention of logged calls. */
const DEFAULT_RANGE_ID = '7d';

/** Searches calls of all groups by id or name, and groups by name. */
export function CallsPage() {
  const [{ q = '' }] = useQuery();
  const { found, problem, isBusy, more } = useCalls(DEFAULT_RANGE_ID);
  const longestMs = Math.max(0, ...(found?.calls.map(({ waited_ms }) => waited_ms ?? 0) ?? []));
  return (
    <div class="found-calls">
      <h1>Calls</h1>
      <CallsForm key={q} />
      <TimeRange defaultId={DEFAULT_RANGE_ID} />
      <MatchingGroups text={q} />
      <Refusals />
      {problem !== null && <p role="alert">{problem.detail}</p>}
      {found !== null && found.missing > 0 && (
        <p role="status">
          {plural(found.missing, 'pool')} did not respond or {found.missing === 1 ? 'was' : 'were'}{' '}
          not searched. Search a single group or a shorter time range.
        </p>
      )}
      {found?.calls.length === 0 && !isBusy && (
        <Nothing since={more === null ? null : found.searchedTo} />
      )}
      <ul class="calls" aria-busy={isBusy}>
        {found?.calls.map((call) => (
          <FoundLine
            key={`${call.group} ${call.partition} ${call.lease} ${call.at}`}
            call={call}
            longestMs={longestMs}
          />
        ))}
      </ul>
      {more !== null && (
        <button type="button" onClick={more}>
          Show earlier calls
        </button>
      )}
    </div>
  );
}

/** @param since start of the searched time, if earlier calls may exist */
function Nothing({ since }: { readonly since: string | null }) {
  if (since !== null) return <p class="help">No matching calls since {exact(since)}.</p>;
  return (
    <p class="help">
      No matching calls. Slow, refused, retried and expensive calls are logged for 7 days, with a
      sample of the others, unless the group sets another retention. Recent calls are found too.
    </p>
  );
}

function MatchingGroups({ text }: { readonly text: string }) {
  const wanted = text.toLowerCase();
  if (wanted === '') return null;
  const names = groups.value.map((group) => group.value.name);
  const matching = names.filter((name) => name.toLowerCase().includes(wanted));
  if (matching.length === 0) return null;
  return (
    <p>
      Groups:{' '}
      {matching.slice(0, GROUPS_SHOWN).map((name, index) => (
        <>
          {index > 0 && ' · '}
          <a href={`/admin/groups/${encodeURIComponent(name)}`}>{name}</a>
        </>
      ))}
    </p>
  );
}
