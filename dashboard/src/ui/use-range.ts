import { useMemo } from 'preact/hooks';
import { linkOf, rangeOf, type HistoryRange } from '../model/history-range.ts';
import { useQuery } from './use-query.ts';

/**
 * The time that a page shows, which stands in its link; one range for all that it shows.
 *
 * @param unsaid the stretch of a link that names none
 */
export function useRange(unsaid?: string): {
  readonly range: HistoryRange;
  /** Shows a stretch from one instant to another, epoch milliseconds. */
  readonly showFrom: (fromMs: number, toMs: number) => void;
  /** Shows a stretch up to now. */
  readonly show: (id: string | null) => void;
} {
  const [query, setQuery] = useQuery();
  const { range: id, from, to } = query;
  const range = useMemo(
    () =>
      rangeOf(
        {
          ...(id === undefined && unsaid === undefined ? {} : { range: id ?? unsaid ?? '' }),
          ...(from === undefined ? {} : { from }),
          ...(to === undefined ? {} : { to }),
        },
        Date.now(),
      ),
    [id, from, to, unsaid],
  );
  return {
    range,
    showFrom: (fromMs, toMs) => setQuery({ ...linkOf(fromMs, toMs), range: '', at: '' }),
    show: (name) => setQuery({ range: name ?? '', from: '', to: '', at: '' }),
  };
}
