import * as z from 'zod';
import { route } from '../route.ts';
import { builtFilesAt, NOT_BUILT, readAsset } from '../../runtime/deployment.ts';
import type { Env } from '../../env.ts';

/** Serves built files. They contain no data of this deployment, so they need no authentication. */
export const DOCS_ROUTES = {
  getOpenApi: route('GET /openapi.json', {
    tag: 'about',
    summary: 'Get this document as OpenAPI',
    role: 'open',
    answers: {
      200: z.looseObject({
        openapi: z.literal('3.1.0').describe('Version of OpenAPI.'),
      }),
    },
  }).servedBy(({ context: { env } }) => built(env, '/openapi.json', 'application/json')),

  getDocs: route('GET /docs', {
    tag: 'about',
    summary: 'Get this document as a page',
    role: 'open',
    query: z.strictObject({
      q: z.string().max(100).optional().describe('Words by which to filter the routes.'),
    }),
    answers: { 200: 'text' },
    contentType: 'text/html',
  }).servedBy(({ context: { env, req } }) => {
    const files = builtFilesAt(req.url);
    return built(env, '/api.html', 'text/html; charset=utf-8', {
      'content-security-policy': `default-src 'none'; script-src ${files}; style-src ${files}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
      'referrer-policy': 'no-referrer',
    });
  }),
};

async function built(
  env: Env,
  path: string,
  type: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const file = await readAsset(env, path);
  if (file === null) return new Response(NOT_BUILT, { status: 503 });
  return new Response(file.body, { headers: { ...headers, 'content-type': type } });
}
