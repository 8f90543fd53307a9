import { feedOf } from '../env.ts';
import { requireRole } from './access/actor.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { ProblemError } from './problem.ts';
import { serve } from './serve.ts';
import { whileAllowed } from './while-allowed.ts';

/** Interval of permission checks, and so the maximum time for which a revoked actor still receives events. */
const RECHECK_EVERY_MS = 15_000;

export function addEventRoutes(app: AdminApp): void {
  serve(app, 'streamEvents', async ({ context, query }) => {
    const url = new URL('https://feed/events');
    if (query.group !== undefined) url.searchParams.set('group', query.group);
    const { body } = await feedOf(context.env).fetch(new Request(url));
    if (body === null) throw new ProblemError(503, 'The live feed is unreachable. Retry later.');
    const events = whileAllowed(body, () => mayLook(context), RECHECK_EVERY_MS);
    context.executionCtx.waitUntil(events.ended);
    return new Response(events.body, {
      headers: {
        'content-type': 'text/event-stream; charset=utf-8',
        // nginx would buffer the events.
        'x-accel-buffering': 'no',
      },
    });
  });
}

/** Returns whether the actor may still read the stream. Sessions end, and keys are revoked. */
async function mayLook(context: AdminContext): Promise<boolean> {
  try {
    await requireRole(context, 'viewer');
    return true;
  } catch (error) {
    // If the directory is unreachable, the actor keeps its access.
    return !(error instanceof ProblemError);
  }
}
