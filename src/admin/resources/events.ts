import * as z from 'zod';
import { route } from '../route.ts';
import { ProblemError, type AdminContext } from '../context.ts';
import { requireRole } from '../access.ts';
import { feedOf } from '../../env.ts';

const EVENTS = `Server-sent events with JSON data. \`snapshot\` comes first, and equals the response of \`GET /status\`.
\`groups\` follows at most once a second, with changed groups and the names of those that are \`gone\`. With \`group\`,
\`detail\` has its first 200 leases and waiters. \`attention\` is sent when the attention list changes, \`warning\` when a
warning is raised, \`version\` when the configuration changes, and \`beat\` every two seconds. If a stream breaks or ends,
open a new one. It begins with a snapshot.`;

interface GuardedStream {
  readonly body: ReadableStream;
  readonly ended: Promise<void>;
}

/** Interval of permission checks, and so the maximum time for which a revoked actor still receives events. */
const RECHECK_EVERY_MS = 15_000;

export const EVENT_ROUTES = {
  streamEvents: route('GET /events', {
    tag: 'status',
    summary: 'Stream the state of the groups',
    description: EVENTS.replaceAll('\n', ' '),
    role: 'viewer',
    query: z.strictObject({
      group: z
        .string()
        .min(1)
        .max(300)
        .optional()
        .describe('Group whose leases and waiters to send as well.'),
    }),
    answers: { 200: 'text' },
    contentType: 'text/event-stream',
  }).servedBy(async ({ context, query }) => {
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
  }),
};

/** A class of the runtime. Programs with the types of other runtimes lack it. */
declare const IdentityTransformStream: new () => {
  readonly readable: ReadableStream;
  readonly writable: WritableStream;
};

/** Forwards a stream while `isAllowed` returns true. It is called periodically. */
export function whileAllowed(
  source: ReadableStream,
  isAllowed: () => Promise<boolean>,
  everyMs: number,
): GuardedStream {
  const { readable, writable } = new IdentityTransformStream();
  const stop = new AbortController();
  const check = async (): Promise<void> => {
    if (!(await isAllowed())) stop.abort(new Error('not allowed any more'));
  };
  const timer = setInterval(() => {
    check().catch(() => {});
  }, everyMs);
  const ended = source
    .pipeTo(writable, { signal: stop.signal })
    .catch(() => {}) // The reader disconnected, the hub was reset, or access was revoked.
    .finally(() => clearInterval(timer));
  return { body: readable, ended };
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
