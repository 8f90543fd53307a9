import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Plugin } from 'vite';

/** The file that names the others. */
const PAGE = 'index.html';

/**
 * Writes the build in place of the one that is there, without a moment in which the page or a file that it
 * names is missing: Wrangler builds the dashboard whenever it starts or deploys, and another one may be
 * serving the same folder. For a build that writes nothing itself.
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
      // The last one: what it is given is what Vite would write.
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

/** Writes all files beside the folder, and renames one after the other into it, the page last. */
async function moveInto(folder: string, cache: string, files: readonly BuiltFile[]): Promise<void> {
  await mkdir(cache, { recursive: true });
  const beside = await mkdtemp(join(cache, 'dashboard-'));
  try {
    for (const [path, content] of files) await writeAt(join(beside, path), content);
    const others = files.map(([path]) => path).filter((path) => path !== PAGE);
    for (const path of [...others, PAGE]) {
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

/** Removes what older builds left. A newer file is of a build that runs beside this one. */
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
