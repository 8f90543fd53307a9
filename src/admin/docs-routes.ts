import { openApiDocument, type OpenApiDocument } from '../contract/admin/openapi.ts';
import type { AdminApp } from './context.ts';
import { DOCS_STYLE, docsPage } from './docs-page.ts';
import { serve } from './serve.ts';

/** The page loads only its style sheet, and no scripts may run. */
const CSP =
  "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/**
 * The document and its page are the same for all readers, so they are created once per isolate, at the first request.
 */
let made: { readonly document: OpenApiDocument; readonly page: string } | null = null;

async function description() {
  if (made === null) {
    const document = openApiDocument();
    made = { document, page: await docsPage(document) };
  }
  return made;
}

/** The description contains no data of this deployment, so it needs no authentication. */
export function addDocsRoutes(app: AdminApp): void {
  serve(app, 'getOpenApi', async () => ({
    status: 200,
    body: { ...(await description()).document },
  }));
  serve(app, 'getDocs', async ({ query: { q = '' } }) => ({
    status: 200,
    body: q === '' ? (await description()).page : await docsPage((await description()).document, q),
    headers: { 'content-security-policy': CSP, 'referrer-policy': 'no-referrer' },
  }));
  serve(app, 'getDocsStyle', () => ({ status: 200, body: DOCS_STYLE }));
}
