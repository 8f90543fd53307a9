import { useState } from 'preact/hooks';
import { plural } from '../../format.ts';
import { limitsText, type Key } from '../../model/keys.ts';
import type { SpentOf } from '../../model/teams.ts';
import { When } from '../../ui/when.tsx';
import { KeyActions, type OnAct } from './key-actions.tsx';
import { SpentCells, SpentHeadings } from './spent-cells.tsx';

interface KeyTableProps {
  readonly keys: readonly Key[];
  /** Time of the last rotation by id. */
  readonly rotatedAt: ReadonlyMap<string, string>;
  /** Costs by id. null if unknown. */
  readonly spent: ReadonlyMap<string, SpentOf> | null;
  readonly onAct: OnAct;
}

/** Maximum of shown rows. Longer lists are searched. */
const ROWS_MAX = 200;

export function KeyTable({ keys, rotatedAt, spent, onAct }: KeyTableProps) {
  const [search, setSearch] = useState('');
  const wanted = search.trim().toLowerCase();
  const found = keys.filter(({ id, note, team }) =>
    `${id} ${note} ${team ?? ''}`.toLowerCase().includes(wanted),
  );
  return (
    <>
      <input
        type="search"
        aria-label="Find a key"
        placeholder="Find a key by id, note or team"
        value={search}
        onInput={(event) => setSearch(event.currentTarget.value)}
      />
      <div class="table" tabIndex={0} role="region" aria-label="Gateway keys">
        <table>
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">State</th>
              <SpentHeadings />
              <th scope="col">Groups</th>
              <th scope="col">Lane</th>
              <th scope="col" class="number">
                Weight
              </th>
              <th scope="col">Limits</th>
              <th scope="col">Expires</th>
              <th scope="col">Rotated</th>
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {found.slice(0, ROWS_MAX).map((key) => (
              <Row
                key={key.id}
                of={key}
                rotatedAt={rotatedAt.get(key.id)}
                spent={spent?.get(key.id)}
                onAct={onAct}
              />
            ))}
          </tbody>
        </table>
      </div>
      <p class="help" role="status">
        {found.length > ROWS_MAX
          ? `${ROWS_MAX} of ${plural(found.length, 'key')} are shown. Search to find the others.`
          : `${found.length} of ${plural(keys.length, 'key')}`}
      </p>
    </>
  );
}

function Row(props: {
  readonly of: Key;
  readonly rotatedAt: string | undefined;
  readonly spent: SpentOf | undefined;
  readonly onAct: OnAct;
}) {
  const { of: key, rotatedAt } = props;
  const lane =
    key.lane_default === null
      ? `up to ${key.lane_max}`
      : `${key.lane_default}, up to ${key.lane_max}`;
  const limits = limitsText(key);
  return (
    <tr>
      <th scope="row">
        <code>{key.id}</code>
        {key.note !== '' && <small>{key.note}</small>}
        {key.team !== null && <small>team {key.team}</small>}
      </th>
      <td>
        <span class={`key-state ${key.state}`}>{key.state}</span>
      </td>
      <SpentCells of={props.spent} />
      <td class="wrap">{key.groups.length === 0 ? 'all' : key.groups.join(', ')}</td>
      <td>{lane}</td>
      <td class="number">{key.weight}</td>
      <td class="wrap">{limits ?? <span class="dim">none</span>}</td>
      <td>
        {key.expires_at === null ? <span class="dim">never</span> : <When at={key.expires_at} />}
      </td>
      <td>
        {rotatedAt === undefined ? <span class="dim">–</span> : <When at={rotatedAt} />}
        {key.previous_expires_at !== null && (
          <small>
            previous key expires <When at={key.previous_expires_at} />
          </small>
        )}
      </td>
      <td>
        <KeyActions of={key} onAct={props.onAct} />
      </td>
    </tr>
  );
}
