import type { ReadonlySignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { groups } from '../../feed.ts';
import type { GroupFilter } from '../../model/group-filter.ts';
import { GroupCard } from './group-card.tsx';
import { useOrder } from './use-order.ts';

/** The cards of all groups that are looked for. */
export function CardList({ filter }: { readonly filter: ReadonlySignal<GroupFilter> }) {
  const list = useRef<HTMLUListElement>(null);
  const order = useOrder(filter, list);
  const byName = new Map(groups.value.map((group) => [group.peek().name, group]));
  return (
    <>
      <p class="visually-hidden" role="status">{`${order.value.length} groups are shown`}</p>
      {order.value.length === 0 && <p class="help">No group is like that.</p>}
      <ul class="cards" ref={list}>
        {order.value.map((name) => {
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
