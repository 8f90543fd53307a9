import { defineConfig } from 'vite';
import { replaceFiles } from './replace-files.ts';

/** Builds the page under `/admin`: content-hashed files, and one `index.html` that references them. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/admin/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [replaceFiles()],
  build: {
    outDir: 'dist',
    // Vite would empty the folder first, and break a page that is being served.
    write: false,
    target: 'es2022',
    // The page's content security policy allows no `data:` scripts. One file less is not worth another rule.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
