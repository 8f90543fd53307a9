import { useEffect, useState } from 'preact/hooks';
import { api, type Problem } from '../../api.ts';
import { returns } from '../../feed.ts';
import { OUTCOMES, type FoundCall } from '../../model/found-call.ts';
import { rangeStartMs } from '../../model/history-range.ts';
import { useQuery } from '../../ui/use-query.ts';
import { useRange } from '../../ui/use-range.ts';

interface Found {
  readonly calls: readonly FoundCall[];
  readonly cursor: string | null;
  /** Pools that did not answer, or were not asked. */
  readonly missing: number;
}

/**
 * The calls that the link of the page looks for, asked for when it changes and when the feed is back.
 *
 * @param unsaid the stretch of a link that names none
 */
export function useCalls(unsaid: string) {
  const [{ q, group, outcome }] = useQuery();
  const { range } = useRange(unsaid);
  const [found, setFound] = useState<Found | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const known = (Object.keys(OUTCOMES) as FoundCall['outcome'][]).find((one) => one === outcome);

  const ask = async (before: Found | null, isOver: () => boolean): Promise<void> => {
    const cursor = before?.cursor ?? null;
    const result = await api('findCalls', {
      query: {
        ...(q === undefined ? {} : { q }),
        ...(group === undefined ? {} : { group }),
        ...(known === undefined ? {} : { outcome: known }),
        from: String(rangeStartMs(range, Date.now())),
        ...(range.endMs === null ? {} : { to: String(range.endMs) }),
        ...(cursor === null ? {} : { cursor }),
      },
    });
    if (isOver()) return;
    setProblem(result.ok ? null : result.problem);
    if (!result.ok) return;
    const { calls, next_cursor: next, pools, unreachable } = result.body;
    const missing = pools.left_out + unreachable.length;
    setFound({ calls: [...(before?.calls ?? []), ...calls], cursor: next, missing });
  };

  useEffect(() => {
    let isOver = false;
    setFound(null);
    ask(null, () => isOver).catch(() => undefined);
    return () => {
      isOver = true;
    };
  }, [q, group, known, range, returns.value]);

  const hasMore = found !== null && found.cursor !== null;
  return { found, problem, more: hasMore ? () => void ask(found, () => false) : null };
}
