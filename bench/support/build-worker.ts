import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { ROOT, WRANGLER } from '../../scripts/serve/build.ts';
import { readCompatibility } from '../../scripts/serve/workerd-config.ts';

/** Builds a Worker of the benchmark into a folder, of its module `main`; the answer is the built module's path. */
export async function buildWorker(main: string, dir: string): Promise<string> {
  const config = join(dir, 'wrangler.json');
  const { date, flags } = await readCompatibility();
  const { name } = parse(main);
  await mkdir(dir, { recursive: true });
  await writeFile(
    config,
    JSON.stringify({ name, main, compatibility_date: date, compatibility_flags: flags }),
  );
  const args = [WRANGLER, 'deploy', '--config', config, '--dry-run', '--outdir', dir];
  const env = { ...process.env, WRANGLER_SEND_METRICS: 'false' };
  const built = spawnSync(process.execPath, args, { cwd: ROOT, env, encoding: 'utf8' });
  if (built.status !== 0) throw new Error(`The build failed:\n${built.stdout}${built.stderr}`);
  return join(dir, `${name}.js`);
}
