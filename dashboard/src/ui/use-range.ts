import { useMemo } from 'preact/hooks';
import { linkOf, rangeOf, type HistoryRange } from '../model/history-range.ts';
import { useQuery } from './use-query.ts';

/**
 * The time range in the link of a page, shared by everything on it.
 *
 * @param defaultId id of the range if the link selects none
 */
export function useRange(defaultId?: string): {
  readonly range: HistoryRange;
  /** Selects a custom range, in epoch milliseconds. */
  readonly showFrom: (fromMs: number, toMs: number) => void;
  /** Selects a range that ends now. */
  readonly show: (id: string | null) => void;
} {
  const [query, setQuery] = useQuery();
  const { range: id, from, to } = query;
  const range = useMemo(
    () =>
      rangeOf(
        {
          ...(id === undefined && defaultId === undefined ? {} : { range: id ?? defaultId ?? '' }),
          ...(from === undefined ? {} : { from }),
          ...(to === undefined ? {} : { to }),
        },
        Date.now(),
      ),
    [id, from, to, defaultId],
  );
  return {
    range,
    showFrom: (fromMs, toMs) => setQuery({ ...linkOf(fromMs, toMs), range: '', at: '' }),
    show: (name) => setQuery({ range: name ?? '', from: '', to: '', at: '' }),
  };
}
