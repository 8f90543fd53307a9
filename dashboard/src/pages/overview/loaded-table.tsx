import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { returns } from '../../feed.ts';
import { CardList } from './card-list.tsx';
import type { GroupTable, TableProps } from './group-table.tsx';

/** Code of the table, once it was asked for. */
const part = signal<typeof GroupTable | null>(null);

/** The table, as soon as its code is there. Where it cannot be loaded the groups are cards until the feed is back. */
export function LoadedTable(props: TableProps) {
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    if (part.peek() !== null) return;
    import('./group-table.tsx').then(
      (table) => (part.value = table.GroupTable),
      () => setFailed(true),
    );
  }, [hasFailed && returns.value]);
  const Table = part.value;
  if (Table !== null) return <Table {...props} />;
  return hasFailed ? <CardList filter={props.choice.filter} /> : <div aria-busy="true" />;
}
