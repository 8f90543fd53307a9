import { useState } from 'preact/hooks';
import { DECISIONS_MAX } from '../../../../../src/core/parts/decision-log.ts';
import { plural } from '../../../format.ts';
import { callsOf } from '../../../model/call-story.ts';
import { useQuery } from '../../../ui/use-query.ts';
import { useRange } from '../../../ui/use-range.ts';
import { When } from '../../../ui/when.tsx';
import { CallLine } from './call-line.tsx';
import { DecisionSearch } from './decision-search.tsx';
import { useDecisions } from './use-decisions.ts';
import '../../../ui/call-lines.css';

const SHOWN_AT_FIRST = 20;

/** Explains calls: why each waited, was granted or rejected, and how it ended. */
export function Decisions({ name }: { readonly name: string }) {
  const [query] = useQuery();
  const { range } = useRange();
  const [limit, setLimit] = useState(SHOWN_AT_FIRST);
  const { found, problem, again } = useDecisions(name, {
    lease: query['lease'],
    outcome: query['outcome'],
    ...('range' in query || range.endMs !== null ? { range } : {}),
    limit,
  });
  const calls = found === null ? null : callsOf(found.decisions);
  const longestMs = Math.max(0, ...(found?.decisions.map(({ waited_ms }) => waited_ms) ?? []));
  const isAll = found === null || found.decisions.length < limit || limit === DECISIONS_MAX;
  return (
    <section class="decisions" aria-labelledby="decisions-title">
      <header>
        <h2 id="decisions-title">Explain a call</h2>
        {found !== null && (
          <p>
            <small>
              {plural(calls?.length ?? 0, 'call')}, updated <When at={found.askedAt} />
            </small>{' '}
            <button type="button" onClick={again}>
              Refresh
            </button>
          </p>
        )}
      </header>
      <DecisionSearch />
      {problem !== null && (
        <p role="alert">
          {problem.errors?.map(({ path, message }) => `${path}: ${message}`).join('; ') ??
            problem.detail}
        </p>
      )}
      {found !== null && found.missing > 0 && (
        <p role="status">
          {plural(found.missing, 'partition')} did not respond. Their calls are missing here.
        </p>
      )}
      {calls?.length === 0 && <Nothing isNarrowed={Object.keys(query).length > 0} />}
      <p class="help">
        <a href={`/admin/calls?${keptCalls(name, query)}`}>Logged calls in this time range</a>:
        slow, refused, retried and expensive calls, and a sample of the others. They are kept for 7
        days, unless the group sets another retention.
      </p>
      <ul class="calls" aria-busy={found === null && problem === null}>
        {calls?.map((call) => (
          <CallLine key={call.ticket} group={name} call={call} longestMs={longestMs} />
        ))}
      </ul>
      {!isAll && (
        <button type="button" onClick={() => setLimit(DECISIONS_MAX)}>
          Show the last {DECISIONS_MAX}
        </button>
      )}
    </section>
  );
}

/** Query of the link to the logged calls of the group, in the range that the page shows. */
function keptCalls(group: string, { range, from, to }: Readonly<Record<string, string>>): string {
  const terms = Object.entries({ group, range, from, to });
  return String(
    new URLSearchParams(terms.flatMap(([key, value]) => (value ? [[key, value]] : []))),
  );
}

function Nothing({ isNarrowed }: { readonly isNarrowed: boolean }) {
  return (
    <p class="help">
      {isNarrowed ? 'No matching calls. ' : 'No calls yet. '}
      Each partition keeps its last {DECISIONS_MAX} decisions in memory. A deploy or ten idle
      seconds discard them. To find a call, enter the <code>headgate-lease</code> header of its
      response.
    </p>
  );
}
