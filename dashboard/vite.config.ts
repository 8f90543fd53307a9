import { defineConfig } from 'vite';

/** The page under `/admin`: hashed files that never change, and one `index.html` that names them. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/admin/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2022',
    // The page's policy allows no `data:` scripts, and one file less is no gain worth another rule.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
