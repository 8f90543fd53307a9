import { openApiDocument, type OpenApiDocument } from '../contract/admin/openapi.ts';
import type { AdminApp } from './context.ts';
import { DOCS_STYLE, docsPage } from './docs-page.ts';
import { serve } from './serve.ts';

/** Nothing but this page, its style and its search: no script runs here, wherever it comes from. */
const CSP =
  "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** The same for everybody, so it is made once in an isolate, and only where somebody asks. */
let made: { readonly document: OpenApiDocument; readonly page: string } | null = null;

async function description() {
  if (made === null) {
    const document = openApiDocument();
    made = { document, page: await docsPage(document) };
  }
  return made;
}

/** The description of the API, for programs and for people. It says nothing of this deployment. */
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
