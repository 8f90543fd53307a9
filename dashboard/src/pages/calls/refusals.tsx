import { useEffect } from 'preact/hooks';
import { api } from '../../api.ts';
import { returns } from '../../feed.ts';
import { count, plural } from '../../format.ts';
import { useAnswer } from '../../ui/use-answer.ts';
import { useQuery } from '../../ui/use-query.ts';
import { When } from '../../ui/when.tsx';
import './refusals.css';

const ROWS_MAX = 50;

const REFRESH_MS = 10_000;

/** Calls that Headgate refused in the last hour, by reason, with advice for each reason. */
export function Refusals() {
  const [{ q, group }] = useQuery();
  const [answer, again] = useAnswer(() => ask(q, group), [q, group, returns.value]);
  useEffect(() => {
    const timer = setInterval(again, REFRESH_MS);
    return () => clearInterval(timer);
  }, [again]);
  if (answer === null) return null;
  if ('problem' in answer) return <p role="alert">{answer.problem}</p>;
  const { refusals, left_out: leftOut } = answer;
  if (refusals.length === 0) return null;
  const byReason = [...Map.groupBy(refusals, ({ reason }) => reason)];
  return (
    <section class="refusals" aria-labelledby="refusals-title">
      <h2 id="refusals-title">Refused by Headgate in the last hour</h2>
      {byReason.map(([reason, rows]) => (
        <section key={reason} class="refusals-reason" aria-label={reason}>
          <h3>
            <code>{reason}</code>{' '}
            <span>{calls(rows.reduce((sum, row) => sum + row.count, 0))}</span>
          </h3>
          <p>{rows[0]?.advice}</p>
          <Rows rows={rows} />
        </section>
      ))}
      {leftOut > 0 && (
        <p class="help">
          {plural(leftOut, 'more row')}. To see them, search for a key, group or model.
        </p>
      )}
    </section>
  );
}

type RefusalTableRow = Exclude<
  Awaited<ReturnType<typeof ask>>,
  { problem: string }
>['refusals'][number];

function Rows({ rows }: { readonly rows: readonly RefusalTableRow[] }) {
  return (
    <div
      class="table"
      tabIndex={0}
      role="region"
      aria-label={`Calls refused with ${rows[0]?.reason}`}
    >
      <table>
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">Team</th>
            <th scope="col">Group</th>
            <th scope="col">Upstream</th>
            <th scope="col">Model</th>
            <th scope="col" class="number">
              Calls
            </th>
            <th scope="col">Last</th>
            <th scope="col">Message</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={[row.key, row.team, row.group, row.upstream, row.model].join(' ')}>
              <Name of={row.key} />
              <Name of={row.team} />
              <Name of={row.group} />
              <Name of={row.upstream} />
              <Name of={row.model} />
              <td class="number">{count(row.count)}</td>
              <td>
                <When at={row.last_at} />
              </td>
              <td class="wrap">
                <bdi>{row.message}</bdi>
                {row.request_ids.length > 0 && (
                  <small>
                    request {row.request_ids.length === 1 ? 'id' : 'ids'}{' '}
                    <bdi>{row.request_ids.join(', ')}</bdi>
                  </small>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Name({ of: name }: { readonly of: string | null }) {
  return <td>{name === null ? <span class="dim">–</span> : <bdi>{name}</bdi>}</td>;
}

function calls(number: number): string {
  return number === 1 ? '1 call' : `${count(number)} calls`;
}

async function ask(q: string | undefined, group: string | undefined) {
  const named = { ...(q ? { q } : {}), ...(group ? { group } : {}) };
  const result = await api('GET /refusals', { query: { ...named, limit: String(ROWS_MAX) } });
  if (result.ok) return result.body;
  // The search of calls already reports an unknown group.
  return result.status === 422 ? NOTHING : { problem: result.problem.detail };
}

const NOTHING = { refusals: [], left_out: 0 };
