import { useEffect, useRef, useState } from 'preact/hooks';
import { api, type Problem } from '../../api.ts';
import { returns } from '../../feed.ts';
import { OUTCOMES, type FoundCall } from '../../model/found-call.ts';
import { rangeStartMs } from '../../model/history-range.ts';
import { useQuery } from '../../ui/use-query.ts';
import { useRange } from '../../ui/use-range.ts';

/** Empty pages that are skipped before the user has to ask for more. */
const EMPTY_PAGES_MAX = 30;

interface FoundCalls {
  readonly calls: readonly FoundCall[];
  readonly cursor: string | null;
  /** All matching calls that ended since then are included. */
  readonly searchedTo: string;
  /** Number of pools that did not respond or were not searched. */
  readonly missing: number;
}

/**
 * Calls that match the search in the link. They reload when it changes, and after a reconnect. Pools search their
 * storage in sections, and sections without calls are skipped.
 *
 * @param defaultId id of the range if the link selects none
 */
export function useCalls(defaultId: string) {
  const [{ q, group, outcome }] = useQuery();
  const { range } = useRange(defaultId);
  const [found, setFound] = useState<FoundCalls | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(true);
  /** Number of the latest search. Results of earlier searches are discarded. */
  const searches = useRef(0);
  const known = (Object.keys(OUTCOMES) as FoundCall['outcome'][]).find((one) => one === outcome);

  const askPage = (cursor: string | null) =>
    api('GET /calls', {
      query: {
        ...(q === undefined ? {} : { q }),
        ...(group === undefined ? {} : { group }),
        ...(known === undefined ? {} : { outcome: known }),
        from: String(rangeStartMs(range, Date.now())),
        ...(range.endMs === null ? {} : { to: String(range.endMs) }),
        ...(cursor === null ? {} : { cursor }),
      },
    });

  const ask = async (before: FoundCalls | null): Promise<void> => {
    const search = (searches.current += 1);
    let present = before;
    setBusy(true);
    for (let pages = 0; pages < EMPTY_PAGES_MAX; pages += 1) {
      const result = await askPage(present?.cursor ?? null);
      if (search !== searches.current) return;
      setProblem(result.ok ? null : result.problem);
      if (!result.ok) break;
      present = joined(present, result.body);
      setFound(present);
      if (result.body.calls.length > 0 || present.cursor === null) break;
    }
    setBusy(false);
  };

  useEffect(() => {
    setFound(null);
    ask(null).catch(() => undefined);
    return () => {
      searches.current += 1;
    };
  }, [q, group, known, range, returns.value]);

  const hasMore = !isBusy && found !== null && found.cursor !== null;
  return { found, problem, isBusy, more: hasMore ? () => void ask(found) : null };
}

function joined(
  before: FoundCalls | null,
  page: Extract<Awaited<ReturnType<typeof api<'GET /calls'>>>, { ok: true }>['body'],
): FoundCalls {
  const { calls, next_cursor: cursor, searched_to: searchedTo, pools, unreachable } = page;
  const missing = pools.left_out + unreachable.length;
  return { calls: [...(before?.calls ?? []), ...calls], cursor, searchedTo, missing };
}
