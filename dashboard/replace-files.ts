import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Plugin } from 'vite';

/** They reference the other files, so they are replaced last. */
const PAGES = ['api.html', 'index.html'];

/**
 * Replaces the previous build file by file, so that the page and every file it references exist at all times.
 * Wrangler builds the dashboard on every start and deploy, while another process may be serving the same folder.
 * Requires `build.write: false`.
 */
export function replaceFiles(): Plugin {
  const startedAt = Date.now();
  let folder = '';
  let cache = '';
  return {
    name: 'replace-files',
    configResolved(config) {
      folder = resolve(config.root, config.build.outDir);
      cache = config.cacheDir;
    },
    generateBundle: {
      // Runs after all other plugins: the bundle is then exactly what Vite would write.
      order: 'post',
      async handler(_options, bundle) {
        const files = Object.values(bundle).map(
          (file) => [file.fileName, file.type === 'chunk' ? file.code : file.source] as const,
        );
        await moveInto(folder, cache, files);
        await removeOthers(folder, new Set(Object.keys(bundle)), startedAt);
      },
    },
  };
}

type BuiltFile = readonly [path: string, content: string | Uint8Array];

/** Writes all files to a temporary folder, then moves them into place one by one, the pages last. */
async function moveInto(folder: string, cache: string, files: readonly BuiltFile[]): Promise<void> {
  await mkdir(cache, { recursive: true });
  const beside = await mkdtemp(join(cache, 'dashboard-'));
  try {
    for (const [path, content] of files) await writeAt(join(beside, path), content);
    const others = files.map(([path]) => path).filter((path) => !PAGES.includes(path));
    for (const path of [...others, ...PAGES]) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await rename(join(beside, path), join(folder, path));
    }
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
}

async function writeAt(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
}

/** Removes files of older builds. Newer files belong to a build that runs at the same time. */
async function removeOthers(
  folder: string,
  kept: ReadonlySet<string>,
  startedAt: number,
): Promise<void> {
  const paths = await readdir(folder, { recursive: true });
  for (const path of paths.filter((name) => !kept.has(name.replaceAll('\\', '/')))) {
    const file = await stat(join(folder, path)).catch(() => null);
    if (file?.isFile() && file.mtimeMs < startedAt) await rm(join(folder, path), { force: true });
  }
}
