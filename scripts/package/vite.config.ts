import { join } from 'node:path';
import { defineConfig } from 'vite';

const ROOT = join(import.meta.dirname, '../..');

/**
 * Bundles the command line as JavaScript for Node 20 and later. Its dependencies are not bundled, because npm installs
 * them.
 */
export default defineConfig({
  root: ROOT,
  build: {
    ssr: join(ROOT, 'scripts/headgate.ts'),
    // The same depth as the sources in the project, so that relative paths work in both.
    outDir: join(ROOT, 'dist/cli'),
    target: 'node20',
    copyPublicDir: false,
    rolldownOptions: {
      output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
    },
  },
});
