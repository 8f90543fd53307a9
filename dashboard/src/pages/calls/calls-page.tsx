import { groups } from '../../feed.ts';
import { exact } from '../../format.ts';
import { TimeRange } from '../../ui/time-range.tsx';
import { useQuery } from '../../ui/use-query.ts';
import { CallsForm } from './calls-form.tsx';
import { FoundLine } from './found-line.tsx';
import { Refusals } from './refusals.tsx';
import { useCalls } from './use-calls.ts';
import '../../ui/call-lines.css';
import './calls.css';

/** How many groups of a fitting name are listed. */
const GROUPS_SHOWN = 20;

/** The stretch that is searched where nobody says one: calls are kept for so long. */
const UNSAID = '7d';

/** Finds calls of all groups by any name that somebody has, and groups by their names. */
export function CallsPage() {
  const [{ q = '' }] = useQuery();
  const { found, problem, isBusy, more } = useCalls(UNSAID);
  const longestMs = Math.max(0, ...(found?.calls.map(({ waited_ms }) => waited_ms ?? 0) ?? []));
  return (
    <div class="found-calls">
      <h1>Calls</h1>
      <CallsForm key={q} />
      <TimeRange unsaid={UNSAID} />
      <FittingGroups text={q} />
      <Refusals />
      {problem !== null && <p role="alert">{problem.detail}</p>}
      {found !== null && found.missing > 0 && (
        <p role="status">
          {found.missing} pools did not answer or were not asked: name a group or a shorter time.
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
          Earlier calls
        </button>
      )}
    </div>
  );
}

/** @param since up to when was searched, where there is more before */
function Nothing({ since }: { readonly since: string | null }) {
  if (since !== null) return <p class="help">No call since {exact(since)} fits.</p>;
  return (
    <p class="help">
      No call fits. Those that were slow, refused, sent again or dear are kept for 7 days unless the
      group says otherwise, and a sample of the others; a call that ended a moment ago is found too.
    </p>
  );
}

function FittingGroups({ text }: { readonly text: string }) {
  const wanted = text.toLowerCase();
  if (wanted === '') return null;
  const names = groups.value.map((group) => group.value.name);
  const fitting = names.filter((name) => name.toLowerCase().includes(wanted));
  if (fitting.length === 0) return null;
  return (
    <p>
      Groups:{' '}
      {fitting.slice(0, GROUPS_SHOWN).map((name, index) => (
        <>
          {index > 0 && ' · '}
          <a href={`/admin/groups/${encodeURIComponent(name)}`}>{name}</a>
        </>
      ))}
    </p>
  );
}
