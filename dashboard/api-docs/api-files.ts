import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Plugin } from 'vite';
import { leasesOpenApi } from './leases-openapi.ts';
import { openApiDocument } from './openapi.ts';
import { apiPage } from './page.ts';

/** Adds the OpenAPI documents, and the page of the admin API with its script and style, to the build. */
export function apiFiles(): Plugin {
  let base = '/';
  let script = '';
  return {
    name: 'api-files',
    configResolved(config) {
      base = config.base;
    },
    buildStart() {
      const id = join(import.meta.dirname, 'search.ts');
      script = this.emitFile({ type: 'chunk', id, name: 'api-search' });
    },
    async generateBundle() {
      const source = await readFile(join(import.meta.dirname, 'style.css'), 'utf8');
      const style = this.emitFile({ type: 'asset', name: 'api.css', source });
      const document = openApiDocument();
      const page = await apiPage(document, {
        style: base + this.getFileName(style),
        script: base + this.getFileName(script),
      });
      const files = {
        'api.html': page,
        'openapi.json': JSON.stringify(document),
        'leases-openapi.json': JSON.stringify(leasesOpenApi()),
      };
      for (const [fileName, text] of Object.entries(files)) {
        this.emitFile({ type: 'asset', fileName, source: text });
      }
    },
  };
}
