import type { ReadonlySignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { count, duration, usd } from '../../format.ts';
import { COLUMNS, type ColumnId } from '../../model/group-columns.ts';
import { sentenceOf } from '../../model/sentence.ts';
import { slotsOfGroup } from '../../model/slots.ts';
import type { GroupView } from '../../model/status.ts';
import { useInSight } from '../../ui/in-sight.ts';
import { StateWord } from '../../ui/state-word.tsx';

const FIGURES = COLUMNS.filter((column) => column.isFigure);

/** Table row of a group. It renders on each update while it is in view. */
export function GroupRow({ group: live }: { readonly group: ReadonlySignal<GroupView> }) {
  const root = useRef<HTMLTableRowElement>(null);
  const group = useInSight(root).value ? live.value : live.peek();
  return (
    <tr ref={root}>
      <th scope="row">
        <a href={`/admin/groups/${encodeURIComponent(group.name)}`}>
          <bdi>{group.name}</bdi>
        </a>
        {group.kind !== 'configured' && <small> {group.kind}</small>}
      </th>
      <td class="is">
        <StateWord group={group} />
      </td>
      {FIGURES.map((column) => {
        const value = column.of(group);
        const isNothing = (value === null || value === 0) && column.id !== 'slots';
        return (
          <td
            key={column.id}
            class={isNothing ? 'number nothing' : 'number'}
            data-short={column.short}
            title={column.id === 'slots' ? sentenceOf(slotsOfGroup(group), group) : undefined}
          >
            {inWords(column.id, group, value)}
          </td>
        );
      })}
    </tr>
  );
}

function inWords(id: ColumnId, group: GroupView, value: number | null): string {
  if (id === 'slots') {
    const { inUse, capacity } = slotsOfGroup(group);
    return `${count(inUse)}/${count(capacity)}`;
  }
  if (value === null) return '–';
  if (id === 'p95') return duration(value);
  return id === 'usd' ? usd(value) : count(value);
}
