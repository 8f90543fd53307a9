import type { Env } from '../env.ts';
import { builtFilesAt, NOT_BUILT, readAsset } from '../runtime/assets.ts';
import type { AdminApp } from './context.ts';
import { serve } from './serve.ts';

/** Serves built files. They contain no data of this deployment, so they need no authentication. */
export function addDocsRoutes(app: AdminApp): void {
  serve(app, 'getOpenApi', ({ context: { env } }) =>
    built(env, '/openapi.json', 'application/json'),
  );
  serve(app, 'getDocs', ({ context: { env, req } }) => {
    const files = builtFilesAt(req.url);
    return built(env, '/api.html', 'text/html; charset=utf-8', {
      'content-security-policy': `default-src 'none'; script-src ${files}; style-src ${files}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
      'referrer-policy': 'no-referrer',
    });
  });
}

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
