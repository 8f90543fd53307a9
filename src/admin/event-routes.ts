import { feedOf } from '../env.ts';
import { requireRole } from './access/actor.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { ProblemError } from './problem.ts';
import { serve } from './serve.ts';
import { whileAllowed } from './while-allowed.ts';

/** How long somebody who may not look any more is shown more. */
const RECHECK_EVERY_MS = 15_000;

/** Serves what happens in the groups, as it happens. */
export function addEventRoutes(app: AdminApp): void {
  serve(app, 'streamEvents', async ({ context, query }) => {
    const url = new URL('https://feed/events');
    if (query.group !== undefined) url.searchParams.set('group', query.group);
    const { body } = await feedOf(context.env).fetch(new Request(url));
    if (body === null) throw new ProblemError(503, 'The live feed is out of reach.');
    const events = whileAllowed(body, () => mayLook(context), RECHECK_EVERY_MS);
    context.executionCtx.waitUntil(events.ended);
    return new Response(events.body, {
      headers: {
        'content-type': 'text/event-stream; charset=utf-8',
        // For nginx, which would hold events back.
        'x-accel-buffering': 'no',
      },
    });
  });
}

/** Tells whether who opened the stream might open it now: sessions end, and keys are taken back. */
async function mayLook(context: AdminContext): Promise<boolean> {
  try {
    await requireRole(context, 'viewer');
    return true;
  } catch (error) {
    // A directory out of reach proves nothing against anybody.
    return !(error instanceof ProblemError);
  }
}
