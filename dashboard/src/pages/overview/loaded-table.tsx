import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { returns } from '../../feed.ts';
import { CardList } from './card-list.tsx';
import type { GroupTable, TableProps } from './group-table.tsx';

/** Code of the table, once it is loaded. */
const part = signal<typeof GroupTable | null>(null);

/** The table. If its code cannot be loaded, groups are shown as cards until the feed reconnects. */
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
