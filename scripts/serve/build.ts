import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Root folder of the project or the package. The bundle has the same depth as this file. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Output of `npm run build`: the Worker in one module. */
const BUILT_WORKER = join(ROOT, 'dist', 'index.js');

/** Output of `npm run build:dashboard`, which the build of the Worker runs. */
export const BUILT_DASHBOARD = join(ROOT, 'dashboard', 'dist');

/** Wrangler's script, which runs under the same Node as this process. */
export const WRANGLER = join(ROOT, 'node_modules', 'wrangler', 'bin', 'wrangler.js');

async function modifiedAt(path: string): Promise<number> {
  try {
    return (await stat(path)).mtimeMs;
  } catch {
    return 0;
  }
}

async function newestSource(): Promise<number> {
  const folders = ['src', 'dashboard', 'packages/import'].map(async (folder) => {
    const names = await readdir(join(ROOT, folder), { recursive: true });
    return names.map((name) => join(ROOT, folder, name));
  });
  const paths = (await Promise.all(folders))
    .flat()
    .filter((path) => !`${path}${sep}`.startsWith(`${BUILT_DASHBOARD}${sep}`));
  paths.push(join(ROOT, 'wrangler.toml'), join(ROOT, 'package-lock.json'));
  return Math.max(...(await Promise.all(paths.map(modifiedAt))));
}

async function isFresh(): Promise<boolean> {
  const built = [BUILT_WORKER, join(BUILT_DASHBOARD, 'index.html')];
  const oldest = Math.min(...(await Promise.all(built.map(modifiedAt))));
  return oldest > (await newestSource());
}

/** Runs a program. Its output is shown only if it fails. */
function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const output: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data: Buffer) => output.push(data.toString('utf8')));
    }
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`The build failed:\n${output.join('')}`));
    });
  });
}

/** Builds the Worker and the dashboard if one of them is missing or older than the sources. A package contains both. */
export async function ensureBuilt(): Promise<string> {
  if (!existsSync(join(ROOT, 'src')) || (await isFresh())) return BUILT_WORKER;
  const args = [WRANGLER, 'deploy', '--dry-run', '--outdir', 'dist'];
  // The NODE_ENV of a test runner would create a development build, which is a third larger.
  const env = { ...process.env, NODE_ENV: 'production', WRANGLER_SEND_METRICS: 'false' };
  await run(process.execPath, args, env);
  return BUILT_WORKER;
}
