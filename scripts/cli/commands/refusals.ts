import { plural } from '../../../src/core/words/figures.ts';
import { show, noteAll, span, table, type Output } from '../output.ts';
import { taken, type CliTarget } from '../target.ts';

const ROWS_MAX = 100;

export interface RefusalFilters {
  readonly reason?: string;
  readonly key?: string;
  readonly team?: string;
  readonly group?: string;
  readonly upstream?: string;
  readonly since?: string;
}

/** Lists calls that Headgate rejected within the last hour, with advice for each reason. */
export async function showRefusals(
  target: CliTarget,
  output: Output,
  q: string | undefined,
  filters: RefusalFilters,
): Promise<void> {
  const query = { limit: ROWS_MAX, ...(q === undefined ? {} : { q }), ...filters };
  const answer = taken(await target.admin('GET /refusals', { query }));
  const { refusals, left_out: leftOut } = answer;
  show(output, answer, () =>
    refusals.length === 0
      ? 'No matching refused calls in the last hour.'
      : table(
          ['reason', 'calls', 'key', 'team', 'group', 'upstream', 'model', 'last'],
          refusals.map((one) => [
            one.reason,
            one.count,
            one.key,
            one.team,
            one.group,
            one.upstream,
            one.model,
            `${span(Math.max(0, Date.now() - Date.parse(one.last_at))) || '0 s'} ago`,
          ]),
        ),
  );
  if (output.isJson) return;
  if (leftOut > 0) output.note(`${plural(leftOut, 'more row')} not shown. Narrow the list.`);
  const advice = new Map(refusals.map(({ reason, advice: text }) => [reason, text]));
  noteAll(
    output,
    [...advice].map(([reason, text]) => `${reason}: ${text}`),
  );
}
