import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Lease rows that lie in a data folder whose Headgate has ended. */
export async function leaseRows(dataDir: string): Promise<number> {
  const groups = join(dataDir, 'objects', 'GroupObject');
  if (!existsSync(groups)) return 0;
  let rows = 0;
  for (const name of (await readdir(groups)).filter((file) => file.endsWith('.sqlite'))) {
    const database = new DatabaseSync(join(groups, name));
    const isGroup =
      database.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'lease'`).get() !== undefined;
    if (isGroup) rows += database.prepare('SELECT id FROM lease').all().length;
    database.close();
  }
  return rows;
}
