import { join } from 'node:path';
import { defineConfig } from 'vite';

const ROOT = join(import.meta.dirname, '../..');

/** The command line as JavaScript for any Node from 20 on. What it depends on stays outside: npm installs that. */
export default defineConfig({
  root: ROOT,
  build: {
    ssr: join(ROOT, 'scripts/headgate.ts'),
    // As deep in the package as the sources are in the project: both find the rest from there.
    outDir: join(ROOT, 'dist/cli'),
    target: 'node20',
    copyPublicDir: false,
    rolldownOptions: {
      output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
    },
  },
});
