import { useEffect, useState } from 'preact/hooks';
import { api, type Problem } from '../../../api.ts';
import { returns } from '../../../feed.ts';
import { chartsOf, type Charts, type HistoryMarker } from '../../../model/history-charts.ts';
import { resting } from '../../../idle-page.ts';
import {
  rangeStartMs,
  untilNextMinuteMs,
  type HistoryRange,
} from '../../../model/history-range.ts';

/** Delay after the end of a minute, so that its last call is counted. */
const AFTER_MINUTE_MS = 1_000;

interface ShownHistory extends Charts {
  readonly markers: readonly HistoryMarker[];
  /** Number of pools that did not respond. */
  readonly missing: number;
}

/**
 * History of a group, loaded once a minute while the page is visible. The previous data stays until the next arrives.
 * It reloads after a reconnect.
 */
export function useHistory(name: string, range: HistoryRange, partition: string | undefined) {
  const [shown, setShown] = useState<ShownHistory | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);

  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      const from = String(rangeStartMs(range, Date.now()));
      const step = range.stepMs / 1_000;
      const to = range.endMs === null ? {} : { to: String(Math.min(range.endMs, Date.now())) };
      const query = { from, ...to, step, ...(partition === undefined ? {} : { partition }) };
      const result = await api('GET /groups/{name}/history', { params: { name }, query });
      if (isOver) return;
      setProblem(result.ok ? null : result.problem);
      if (result.ok) {
        const { markers, unreachable } = result.body;
        setShown({ ...chartsOf(result.body), markers, missing: unreachable.length });
      }
    };
    const planNext = (): void => {
      // Another request may have been sent meanwhile, because the page became visible.
      clearTimeout(timer);
      // Past ranges do not change.
      if (isOver || range.endMs !== null) return;
      timer = setTimeout(tick, untilNextMinuteMs(Date.now()) + AFTER_MINUTE_MS);
    };
    const start = (): void => {
      ask()
        .catch(() => undefined)
        .finally(planNext);
    };
    const tick = (): void => {
      clearTimeout(timer);
      // A hidden or resting page loads nothing. It continues when it becomes visible.
      if (document.visibilityState === 'visible' && resting.peek() === null) start();
    };
    start();
    document.addEventListener('visibilitychange', tick);
    return () => {
      isOver = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', tick);
    };
  }, [name, range, partition, returns.value]);

  return { shown, problem };
}
