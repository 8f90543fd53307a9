import { defineConfig } from 'vite';
import { replaceFiles } from './replace-files.ts';

/** The page under `/admin`: hashed files that never change, and one `index.html` that names them. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/admin/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [replaceFiles()],
  build: {
    outDir: 'dist',
    // It would empty the folder first, and leave a served page without its files meanwhile.
    write: false,
    target: 'es2022',
    // The page's policy allows no `data:` scripts, and one file less is no gain worth another rule.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
