import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

interface LifecycleRowsBound {
  readonly seq: number;
  readonly mark: number;
}

/** Slots that the pools of a data folder may have handed out, as far as is on disk. */
export async function slotsOnDisk(dataDir: string): Promise<number> {
  const groups = join(dataDir, 'objects', 'GroupObject');
  if (!existsSync(groups)) return 0;
  let slots = 0;
  for (const name of (await readdir(groups)).filter((file) => file.endsWith('.sqlite'))) {
    const database = new DatabaseSync(join(groups, name), { readOnly: true });
    const isPool =
      database.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'bound'`).get() !== undefined;
    if (isPool) slots += markIn(database);
    database.close();
  }
  return slots;
}

/** Reads the mark of the last row, which is in the ring, or beside the controls. */
function markIn(database: DatabaseSync): number {
  const ring = database.prepare('SELECT data FROM bound').all();
  const rows = ring.map(({ data }) => JSON.parse(String(data)) as LifecycleRowsBound);
  const kept = database.prepare(`SELECT value FROM memory WHERE key = 'controls'`).get();
  const { bound } = JSON.parse(String(kept?.['value'] ?? '{}')) as {
    readonly bound?: LifecycleRowsBound;
  };
  if (bound !== undefined) rows.push(bound);
  return rows.toSorted((one, other) => one.seq - other.seq).at(-1)?.mark ?? 0;
}
