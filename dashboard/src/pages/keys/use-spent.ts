import { api } from '../../api.ts';
import { version } from '../../feed.ts';
import type { CostGrouping, CostRowView } from '../../model/costs.ts';
import { spentByName, type SpentOf } from '../../model/teams.ts';
import { useAnswer } from '../../ui/use-answer.ts';

/** Costs of keys or teams, of today and this month. null if unknown or not loaded. */
export function useSpent(
  by: Extract<CostGrouping, 'key' | 'team'>,
): ReadonlyMap<string, SpentOf> | null {
  const [spent] = useAnswer(async () => {
    const [day, month] = await Promise.all(
      (['day', 'month'] as const).map((period) => api('GET /costs', { query: { period, by } })),
    );
    if (day?.ok !== true || month?.ok !== true) return null;
    return spentByName(day.body.rows as CostRowView[], month.body.rows as CostRowView[]);
  }, [version.value]);
  return spent;
}
