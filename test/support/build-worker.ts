import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { ROOT, WRANGLER } from '../../scripts/serve/build.ts';
import { readCompatibility } from '../../scripts/serve/workerd-config.ts';

/** Builds a Worker of the module `main` into a folder, and returns the path of the built module. */
export async function buildWorker(main: string, dir: string): Promise<string> {
  const config = join(dir, 'wrangler.json');
  const { date, flags } = await readCompatibility();
  const { name } = parse(main);
  await mkdir(dir, { recursive: true });
  const compatibility = { compatibility_date: date, compatibility_flags: flags };
  // As Headgate itself is built.
  await writeFile(config, JSON.stringify({ name, main, keep_names: false, ...compatibility }));
  const args = [WRANGLER, 'deploy', '--config', config, '--dry-run', '--outdir', dir];
  const env = { ...process.env, NODE_ENV: 'production', WRANGLER_SEND_METRICS: 'false' };
  const built = spawnSync(process.execPath, args, { cwd: ROOT, env, encoding: 'utf8' });
  if (built.status !== 0) throw new Error(`The build failed:\n${built.stdout}${built.stderr}`);
  return join(dir, `${name}.js`);
}

/** A module that makes a Worker of a built Headgate, and some of its objects' classes. */
export interface Wrapper {
  readonly path: string;
  /** Name of the function that does. */
  readonly makes: string;
  readonly classes: readonly string[];
}

/** Builds a Worker around a built module into a folder; the answer is the path of its module. */
export async function buildAround(
  built: string,
  { path, makes, classes }: Wrapper,
  dir: string,
): Promise<string> {
  await mkdir(dir, { recursive: true });
  const main = join(dir, 'around.js');
  const [from, wrapper] = [built, path].map((file) => JSON.stringify(file));
  const names = classes.join(', ');
  await writeFile(
    main,
    `import * as built from ${from};
import { ${makes} } from ${wrapper};
const { ${names}, worker } = ${makes}(built);
export * from ${from};
export { ${names}, worker as default };
`,
  );
  return buildWorker(main, join(dir, 'built'));
}
