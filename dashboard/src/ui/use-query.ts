import { useLocation } from 'preact-iso';

type QueryValues = Readonly<Record<string, string>>;
type ChangeQuery = (changed: Readonly<Record<string, string | undefined>>) => void;

/**
 * Reads and changes the query of this page's link. Empty values are removed. Changes add no history entry.
 */
export function useQuery(): readonly [QueryValues, ChangeQuery] {
  const { path, query, route } = useLocation();
  const change: ChangeQuery = (changed) => {
    const search = new URLSearchParams(query);
    for (const [key, value] of Object.entries(changed)) {
      if (value === undefined || value === '') search.delete(key);
      else search.set(key, value);
    }
    const text = search.toString();
    route(text === '' ? path : `${path}?${text}`, true);
  };
  return [query, change];
}
