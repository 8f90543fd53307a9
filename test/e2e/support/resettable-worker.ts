import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureBuilt } from '../../../scripts/serve/build.ts';

/**
 * Lease that nobody holds, and that ends the object's instance, with all that it has in memory, when it is taken
 * back. On a platform an eviction or a deploy does so, which never happens on a workerd of our own.
 */
export const RESET_LEASE = 'reset-by-the-test';

const RESET = `
const { revoke: headgateRevoke } = GroupObject.prototype;
GroupObject.prototype.revoke = function (id) {
  if (id === '${RESET_LEASE}') this.ctx.abort('reset by the test');
  return headgateRevoke.call(this, id);
};
`;

/** The built Worker with that added: its path, in a folder that the caller removes. */
export async function resettableWorker(folder: string): Promise<string> {
  const built = await readFile(await ensureBuilt(), 'utf8');
  const path = join(folder, 'resettable-worker.js');
  await writeFile(path, `${built}\n${RESET}`);
  return path;
}
