import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ROOT } from '../../../scripts/serve/build.ts';

const run = promisify(execFile);
const SOURCES = ['programs', 'recipes'].map((name) =>
  fileURLToPath(new URL(`../client/${name}/`, import.meta.url)),
);

/** Packages that recipes use besides, as the project has them. */
const BESIDES = ['@aws-sdk', 'ai'];

/** The machine's own programs: without the Node that the project brings along. */
export const MACHINE_PATH = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter);

/** The client package as people get it: built, packed, and installed into a folder of its own with programs that use it. */
export interface PackedClient {
  readonly folder: string;
  /** Paths of the packed files. */
  readonly files: readonly string[];
  remove(): Promise<void>;
}

/** Packs the client and installs it as the README says. */
export async function installPackedClient(): Promise<PackedClient> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-client-'));
  const source = join(folder, 'source');
  await cp(join(ROOT, 'packages/client'), source, {
    recursive: true,
    filter: (path) => !path.endsWith('/src') && !path.endsWith('/dist'),
  });
  // Others build at the same time, so each has its own place to build to.
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const project = join(ROOT, 'packages/client');
  await run(process.execPath, [tsc, '-p', project, '--outDir', join(source, 'dist')]);
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder, source];
  const { stdout } = await run('npm', pack, { cwd: folder });
  const [packed] = Object.values(
    JSON.parse(stdout) as Record<string, { filename: string; files: { path: string }[] }>,
  );
  const app = join(folder, 'app');
  for (const from of SOURCES) await cp(from, app, { recursive: true });
  await writeFile(join(app, 'package.json'), '{ "private": true }');
  const options = ['--offline', '--no-audit', '--no-fund'];
  const tarball = `headgate@file:../${packed?.filename}`;
  await run('npm', ['install', ...options, tarball], { cwd: app });
  const besides = join(folder, 'node_modules');
  await mkdir(besides);
  for (const name of BESIDES) await symlink(join(ROOT, 'node_modules', name), join(besides, name));
  return {
    folder: app,
    files: packed?.files.map(({ path }) => path) ?? [],
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
