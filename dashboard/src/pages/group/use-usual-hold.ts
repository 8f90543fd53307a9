import { useEffect, useRef, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { median } from '../../model/cells.ts';
import type { Detail } from '../../model/status.ts';
import { useAnswer } from '../../ui/use-answer.ts';

/** Number of recent calls that define the usual hold. */
const SAMPLES_MAX = 100;

/**
 * Usual hold of a call in this group, in milliseconds: the median of the last calls, loaded once, and of calls that
 * ended since. null if no ended call is known.
 */
export function useUsualHold(name: string, detail: Detail | null): number | null {
  const query = { outcome: 'granted', limit: SAMPLES_MAX } as const;
  const [before] = useAnswer(
    () => api('GET /groups/{name}/decisions', { params: { name }, query }),
    [name],
  );
  const [since, setSince] = useState<readonly number[]>([]);
  const held = useRef<ReadonlyMap<string, number>>(new Map());

  useEffect(() => {
    if (detail === null || detail.leases_total > detail.leases.length) return;
    const now = new Map(
      detail.leases.filter(({ state }) => state === 'held').map(({ id, age_ms }) => [id, age_ms]),
    );
    const ended = [...held.current].flatMap(([id, ageMs]) => (now.has(id) ? [] : [ageMs]));
    held.current = now;
    if (ended.length > 0) setSince((had) => [...ended, ...had].slice(0, SAMPLES_MAX));
  }, [detail]);

  const reported = before?.ok === true ? before.body.decisions : [];
  const samples = [...since, ...reported.flatMap(({ held_ms }) => held_ms ?? [])];
  return median(samples.slice(0, SAMPLES_MAX));
}
