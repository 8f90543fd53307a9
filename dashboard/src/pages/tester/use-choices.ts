import { useEffect, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { complain } from '../../ui/toasts.tsx';

/** Choices in the tester. */
export interface Choices {
  readonly upstreamIds: readonly string[];
  readonly keyIds: readonly string[];
}

const PAGE = 1_000;
/** Maximum of pages that are read: the configuration takes 10,000 keys at the most. */
const PAGES_MAX = 10;

/** Upstreams and keys, read once. Null: not yet. */
export function useChoices(): Choices | null {
  const [choices, setChoices] = useState<Choices | null>(null);
  useEffect(() => {
    const ask = async (): Promise<void> => {
      const [upstreams, keyIds] = await Promise.all([
        api('listUpstreams', { query: { limit: PAGE } }),
        allKeyIds(),
      ]);
      if (!upstreams.ok) complain(upstreams.problem.detail);
      const infos = upstreams.ok ? upstreams.body.upstreams : [];
      setChoices({ upstreamIds: infos.map(({ id }) => id), keyIds });
    };
    ask().catch(() => undefined);
  }, []);
  return choices;
}

async function allKeyIds(): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
    const result = await api('listKeys', { query });
    if (!result.ok) return ids;
    ids.push(...result.body.keys.map(({ id }) => id));
    if (result.body.next_cursor === null) return ids;
    cursor = result.body.next_cursor;
  }
  return ids;
}
