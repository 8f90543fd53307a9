import { useEffect, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { complain } from '../../ui/toasts.tsx';

export interface Choices {
  readonly upstreamIds: readonly string[];
  readonly keyIds: readonly string[];
}

const PAGE = 1_000;
/** Maximum of pages, which covers the configuration limit of 10,000 keys. */
const PAGES_MAX = 10;

/** Ids of upstreams and keys, loaded once. null until then. */
export function useChoices(): Choices | null {
  const [choices, setChoices] = useState<Choices | null>(null);
  useEffect(() => {
    const ask = async (): Promise<void> => {
      const [upstreams, keyIds] = await Promise.all([
        api('GET /upstreams', { query: { limit: PAGE } }),
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
    const result = await api('GET /keys', { query });
    if (!result.ok) return ids;
    ids.push(...result.body.keys.map(({ id }) => id));
    if (result.body.next_cursor === null) return ids;
    cursor = result.body.next_cursor;
  }
  return ids;
}
