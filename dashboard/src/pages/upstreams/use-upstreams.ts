import { useCallback, useEffect, useState } from 'preact/hooks';
import { api, type Problem } from '../../api.ts';
import type { UpstreamInfo } from '../../model/upstream-view.ts';

/** Maximum of one response. About forty are built in, and 200 may be configured. */
const LIMIT = 1_000;

export function useUpstreams() {
  const [upstreams, setUpstreams] = useState<readonly UpstreamInfo[] | null>(null);
  const [etag, setEtag] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isOver = false;
    const ask = async (): Promise<void> => {
      const result = await api('GET /upstreams', { query: { limit: LIMIT } });
      if (isOver) return;
      setProblem(result.ok ? null : result.problem);
      if (!result.ok) return;
      setUpstreams(result.body.upstreams);
      setEtag(result.etag);
    };
    ask().catch(() => undefined);
    return () => {
      isOver = true;
    };
  }, [round]);
  const again = useCallback(() => setRound((before) => before + 1), []);
  return { upstreams, etag, problem, again };
}
