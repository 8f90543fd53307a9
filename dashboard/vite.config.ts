import { defineConfig } from 'vite';
import { apiFiles } from './api-docs/api-files.ts';
import { replaceFiles } from './replace-files.ts';

/** Builds the page under `/admin` and that of the API: content-hashed files, and two pages that reference them. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/admin/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [apiFiles(), replaceFiles()],
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
