import { useEffect, useState } from 'preact/hooks';
import { api, type Problem } from '../../../api.ts';
import { returns } from '../../../feed.ts';
import { rangeStartMs, type HistoryRange } from '../../../model/history-range.ts';
import type { DecisionView } from '../../../model/call-words.ts';

/** Search for decisions. Absent fields match everything. */
export interface DecisionSearch {
  readonly lease: string | undefined;
  readonly outcome: string | undefined;
  /** Absent means any time. */
  readonly range?: HistoryRange;
  readonly limit: number;
}

interface FoundDecisions {
  readonly decisions: readonly DecisionView[];
  readonly missing: number;
  readonly askedAt: string;
}

const OUTCOMES = ['granted', 'rejected', 'left', 'moved'] as const;

/** Matching decisions of a group. They reload when the search changes, with `again`, and after a reconnect. */
export function useDecisions(name: string, search: DecisionSearch) {
  const [found, setFound] = useState<FoundDecisions | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [round, setRound] = useState(0);

  useEffect(() => {
    let isOver = false;
    const ask = async (): Promise<void> => {
      const result = await api('GET /groups/{name}/decisions', {
        params: { name },
        query: queryOf(search),
      });
      if (isOver) return;
      setProblem(result.ok ? null : result.problem);
      if (!result.ok) return;
      const { decisions, unreachable } = result.body;
      const askedAt = new Date().toISOString();
      setFound({ decisions, missing: unreachable.length, askedAt });
    };
    ask().catch(() => undefined);
    return () => {
      isOver = true;
    };
  }, [name, JSON.stringify(search), round, returns.value]);

  return { found, problem, again: () => setRound(round + 1) };
}

function queryOf({ lease, outcome, range, limit }: DecisionSearch) {
  const known = OUTCOMES.find((one) => one === outcome);
  return {
    limit,
    ...(lease === undefined ? {} : { lease: lease.trim() }),
    ...(known === undefined ? {} : { outcome: known }),
    ...(range === undefined ? {} : { from: String(rangeStartMs(range, Date.now())) }),
    ...(range === undefined || range.endMs === null ? {} : { to: String(range.endMs) }),
  };
}
