import * as z from 'zod';
import { DECISIONS_MAX } from '../../core/parts/decision-log.ts';
import { outcomeSchema } from '../decisions.ts';
import { decisionsSchema, historySchema, warningsSchema } from './observation-schemas.ts';
import { routes } from './route.ts';

const params = z.strictObject({ name: z.string().min(1).max(300) });

/** An instant in a query: RFC 3339, or epoch milliseconds. */
const queryInstant = z.union(
  [
    z.iso.datetime({ offset: true }).transform((text) => Date.parse(text)),
    z
      .string()
      .regex(/^\d{1,15}$/)
      .transform(Number),
  ],
  'expected RFC 3339, or epoch milliseconds',
);

const EVENTS = `Server-sent events, each with JSON as its data. \`snapshot\` comes first and is what \`GET /status\` answers.
Then, at most once a second, \`groups\`: those that changed, and names of those that are \`gone\`. With \`group\` also
\`detail\`: its first 200 leases and waiters. \`warning\` when one is raised, \`version\` when the configuration changed,
and \`beat\` every two seconds. A stream that breaks off or ends is opened anew, and begins with a snapshot.`;

/** Why calls of a group were granted, held up or refused, what it did over time, and what it warned of. */
export const OBSERVATION_ROUTES = routes({
  getHistory: {
    method: 'GET',
    path: '/groups/{name}/history',
    tag: 'status',
    summary: 'What a group did over time, of the last 30 days',
    description:
      'Without a query: the last hour by the minute. Points of a minute are kept for a day, of 15 minutes for 30 days.',
    role: 'viewer',
    params,
    query: z.strictObject({
      from: queryInstant.optional(),
      to: queryInstant.optional(),
      /** Seconds; a multiple of 60. */
      step: z.coerce.number().int().min(60).max(2_592_000).multipleOf(60).optional(),
      /** One partition of a split group. Absent: all of them together. */
      partition: z.string().max(1_000).optional(),
    }),
    answers: { 200: historySchema },
    problems: [404],
  },
  streamEvents: {
    method: 'GET',
    path: '/events',
    tag: 'status',
    summary: 'What happens in the groups, live',
    description: EVENTS.replaceAll('\n', ' '),
    role: 'viewer',
    query: z.strictObject({
      /** The group whose leases and waiters are told besides. */
      group: z.string().min(1).max(300).optional(),
    }),
    answers: { 200: 'text' },
    contentType: 'text/event-stream',
  },
  listDecisions: {
    method: 'GET',
    path: '/groups/{name}/decisions',
    tag: 'status',
    summary: 'Why calls were granted, held up or refused, latest first',
    role: 'viewer',
    params,
    query: z.strictObject({
      /** The header `headgate-lease` as it is, or a ticket. */
      lease: z.string().min(1).max(2_000).optional(),
      from: queryInstant.optional(),
      to: queryInstant.optional(),
      outcome: outcomeSchema.optional(),
      limit: z.coerce.number().int().min(1).max(DECISIONS_MAX).default(100),
    }),
    answers: { 200: decisionsSchema },
    problems: [404],
  },
  listWarnings: {
    method: 'GET',
    path: '/groups/{name}/warnings',
    tag: 'status',
    summary: 'What a group warned of, the last 100, latest first',
    role: 'viewer',
    params,
    answers: { 200: warningsSchema },
    problems: [404],
  },
});
