import { useRef } from 'preact/hooks';
import { groups } from '../../feed.ts';
import { plural } from '../../format.ts';
import type { GroupFilter } from '../../model/group-filter.ts';
import { GroupCard } from './group-card.tsx';
import { useOrder } from './use-order.ts';

export function CardList({ filter }: { readonly filter: GroupFilter }) {
  const list = useRef<HTMLUListElement>(null);
  const { shown } = useOrder({ filter, sort: null, foldsIdle: false }, list);
  const byName = new Map(groups.value.map((group) => [group.peek().name, group]));
  return (
    <>
      <p class="visually-hidden" role="status">{`${plural(shown.length, 'group')} shown`}</p>
      {shown.length === 0 && <p class="help">No matching groups. Change or clear the filters.</p>}
      <ul class="cards" ref={list}>
        {shown.map((name) => {
          const group = byName.get(name);
          return group === undefined ? null : (
            <li key={name}>
              <GroupCard group={group} />
            </li>
          );
        })}
      </ul>
    </>
  );
}
