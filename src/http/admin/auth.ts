import { createMiddleware } from 'hono/factory';
import type { Env } from '../../contract/env.ts';
import { ProblemError } from './problem.ts';

/** Lets through who knows `ADMIN_TOKEN`. Without one the routes are closed to everybody. */
export const requireAdminToken = createMiddleware<{ Bindings: Env }>(async (context, next) => {
  const expected = context.env.ADMIN_TOKEN ?? '';
  if (expected === '') {
    throw new ProblemError(
      403,
      'No ADMIN_TOKEN is set, so the admin routes are closed. Set one with `npx wrangler secret put ADMIN_TOKEN`, or in the environment where Headgate hosts itself.',
    );
  }
  const given = /^bearer +(.+)$/i.exec(context.req.header('authorization') ?? '')?.[1] ?? '';
  if (!(await isSame(given.trim(), expected))) {
    throw new ProblemError(401, 'Send `Authorization: Bearer <ADMIN_TOKEN>`.', {
      headers: { 'www-authenticate': 'Bearer realm="headgate"' },
    });
  }
  await next();
});

/** Digests have one length, so that neither the length nor the first difference shows in the time. */
async function isSame(given: string, expected: string): Promise<boolean> {
  const [a, b] = await Promise.all([digest(given), digest(expected)]);
  return crypto.subtle.timingSafeEqual(a, b);
}

function digest(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
}
