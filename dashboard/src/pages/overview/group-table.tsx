import type { ReadonlySignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { groups } from '../../feed.ts';
import { plural } from '../../format.ts';
import { ariaSort, COLUMNS, nextSort, type Sort } from '../../model/group-columns.ts';
import type { OverviewChoice } from '../../model/overview-choice.ts';
import type { GroupView } from '../../model/status.ts';
import { GroupRow } from './group-row.tsx';
import { useOrder } from './use-order.ts';
import './group-table.css';

export interface TableProps {
  readonly choice: OverviewChoice;
  /** Called with changes of the query. undefined removes a value from the link. */
  readonly onChange: (changed: Readonly<Record<string, string | undefined>>) => void;
}

/** Table of the groups that match the filter. Idle groups are folded into one line. */
export function GroupTable({ choice, onChange }: TableProps) {
  const { filter, sort, isIdleShown } = choice;
  const table = useRef<HTMLTableElement>(null);
  const { shown, idle } = useOrder({ filter, sort, foldsIdle: true }, table);
  const byName = new Map(groups.value.map((group) => [group.peek().name, group]));
  return (
    <>
      <p class="visually-hidden" role="status">
        {`${plural(shown.length + (isIdleShown ? idle.length : 0), 'group')} shown`}
      </p>
      {shown.length + idle.length === 0 && (
        <p class="help">No matching groups. Change or clear the filters.</p>
      )}
      <div class="table groups" tabIndex={0} role="region" aria-label="Table of groups">
        <table ref={table}>
          <Heads sort={sort} onSort={(to) => onChange({ view: 'table', sort: to })} />
          <tbody>
            <Rows names={shown} of={byName} />
          </tbody>
          {idle.length > 0 && (
            <tbody class="fold">
              <tr>
                <td colSpan={COLUMNS.length}>
                  <button
                    type="button"
                    class="quiet"
                    aria-expanded={isIdleShown}
                    title="No calls in flight or queued, no calls in the last hour, and no cost today"
                    onClick={() => onChange({ idle: isIdleShown ? undefined : 'shown' })}
                  >
                    {isIdleShown ? '▾' : '▸'} {plural(idle.length, 'idle group')}
                  </button>
                </td>
              </tr>
            </tbody>
          )}
          {isIdleShown && (
            <tbody>
              <Rows names={idle} of={byName} />
            </tbody>
          )}
        </table>
      </div>
    </>
  );
}

function Rows(props: {
  readonly names: readonly string[];
  readonly of: ReadonlyMap<string, ReadonlySignal<GroupView>>;
}) {
  return (
    <>
      {props.names.map((name) => {
        const group = props.of.get(name);
        return group === undefined ? null : <GroupRow key={name} group={group} />;
      })}
    </>
  );
}

/** Column headings. Each click sorts by the column, then reverses, then removes the sort. */
function Heads(props: {
  readonly sort: Sort | null;
  readonly onSort: (sort: string | undefined) => void;
}) {
  return (
    <thead>
      <tr>
        {COLUMNS.map((column) => {
          const way = ariaSort(props.sort, column);
          return (
            <th
              key={column.id}
              scope="col"
              class={column.isFigure ? 'number' : undefined}
              aria-sort={way}
            >
              <button
                type="button"
                class="quiet"
                onClick={() => props.onSort(nextSort(props.sort, column.id))}
              >
                {column.name} <span aria-hidden="true">{way === 'ascending' ? '▲' : '▼'}</span>
              </button>
            </th>
          );
        })}
      </tr>
    </thead>
  );
}
