import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureBuilt } from '../../../scripts/serve/build.ts';

/** Line of the log for when the hub of the dashboards tells a pool that nobody looks any more. */
export const NOBODY_LOOKS = 'feed wants nothing';

const PUSHES = `
const { push: headgatePush } = FeedObject.prototype;
FeedObject.prototype.push = async function (...told) {
  const wants = await headgatePush.apply(this, told);
  console.log('feed wants ' + wants);
  return wants;
};
`;

/** The built Worker whose hub says in the log what it answers to pools, in a folder that the caller removes. */
export async function reportingWorker(folder: string): Promise<string> {
  const built = await readFile(await ensureBuilt(), 'utf8');
  const path = join(folder, 'telling-worker.js');
  await writeFile(path, `${built}\n${PUSHES}`);
  return path;
}
