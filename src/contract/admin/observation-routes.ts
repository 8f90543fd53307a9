import * as z from 'zod';
import { DECISIONS_MAX } from '../../core/parts/decision-log.ts';
import { callOutcomeSchema } from '../calls.ts';
import { outcomeSchema } from '../decisions.ts';
import {
  callsSchema,
  decisionsSchema,
  historySchema,
  warningsSchema,
} from './observation-schemas.ts';
import { routes } from './route.ts';

const params = z.strictObject({
  name: z.string().min(1).max(300).describe('URL-encoded name of the group.'),
});

/** A time in a query: RFC 3339, or epoch milliseconds. */
export const queryInstant = z.union(
  [
    z.iso.datetime({ offset: true }).transform((text) => Date.parse(text)),
    z
      .string()
      .regex(/^\d{1,15}$/)
      .transform(Number),
  ],
  'expected RFC 3339, or epoch milliseconds',
);

const fromInstant = queryInstant
  .optional()
  .describe('Start of the period: RFC 3339, or epoch milliseconds.');
const toInstant = queryInstant
  .optional()
  .describe('End of the period, exclusive: RFC 3339, or epoch milliseconds. Defaults to now.');

const EVENTS = `Server-sent events with JSON data. \`snapshot\` comes first, and equals the response of \`GET /status\`.
\`groups\` follows at most once a second, with changed groups and the names of those that are \`gone\`. With \`group\`,
\`detail\` has its first 200 leases and waiters. \`attention\` is sent when the attention list changes, \`warning\` when a
warning is raised, \`version\` when the configuration changes, and \`beat\` every two seconds. If a stream breaks or ends,
open a new one. It begins with a snapshot.`;

/** A value by which calls are found. */
const name = z.string().trim().min(1).max(500).optional();

const CALLS = `Each call that was slow, refused, retried or expensive is logged in each of its groups, and so is a sample of the
others. \`log\` of the group defines which calls, and for how long. Pools that were not used since \`from\` are not queried.
Calls that are in flight or have just ended are found by their lease, agent or other values. Prompts and responses are never stored.`;

export const OBSERVATION_ROUTES = routes({
  getHistory: {
    tag: 'status',
    summary: 'Get the history of a group, up to 30 days',
    description:
      'Without a query, returns the last hour by the minute. Points of a minute are kept for a day, and points of 15 minutes for 30 days.',
    role: 'viewer',
    params,
    query: z.strictObject({
      from: fromInstant,
      to: toInstant,
      step: z.coerce.number().int().min(60).max(2_592_000).multipleOf(60).optional().meta({
        description:
          'Length of a step, a multiple of 60. Defaults to a value that suits the period.',
        unit: 's',
      }),
      partition: z
        .string()
        .max(1_000)
        .optional()
        .describe('One partition of a split group. Absent means all partitions together.'),
    }),
    answers: { 200: historySchema },
    problems: [404],
  },
  streamEvents: {
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
  },
  listDecisions: {
    tag: 'status',
    summary: 'List the decisions of a group, the latest first',
    role: 'viewer',
    params,
    query: z.strictObject({
      lease: z
        .string()
        .min(1)
        .max(2_000)
        .optional()
        .describe('Value of the header `headgate-lease`, or a ticket.'),
      from: fromInstant,
      to: toInstant,
      outcome: outcomeSchema.optional().describe('Return only decisions of this kind.'),
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(DECISIONS_MAX)
        .default(100)
        .describe('Maximum number of decisions to return.'),
    }),
    answers: { 200: decisionsSchema },
    problems: [404],
  },
  findCalls: {
    tag: 'status',
    summary: 'Find logged calls of all groups, the latest first',
    description: CALLS.replaceAll('\n', ' '),
    role: 'viewer',
    query: z.strictObject({
      q: name.describe(
        'A lease or ticket, an agent run, a tenant, a key, a model, or the upstream’s id of the request. Accepts the value of the header `headgate-lease`.',
      ),
      lease: name.describe('Value of the header `headgate-lease`, or a ticket.'),
      agent: name.describe('Agent run.'),
      tenant: name.describe('Tenant.'),
      key: name.describe('Id of a gateway key, or fingerprint of a provider key.'),
      model: name.describe('Model, as the call named it.'),
      request_id: name.describe("The upstream's id of the request."),
      group: z.string().min(1).max(300).optional().describe('Return only calls in this group.'),
      outcome: callOutcomeSchema.optional().describe('Return only calls with this outcome.'),
      from: queryInstant
        .optional()
        .describe(
          'Start of the period: RFC 3339, or epoch milliseconds. Defaults to 7 days before its end.',
        ),
      to: toInstant,
      cursor: z
        .string()
        .regex(/^\d{1,15}$/, 'expected the `next_cursor` of a response')
        .transform(Number)
        .optional()
        .describe(
          'The `next_cursor` of the previous response, with all other parameters unchanged.',
        ),
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(500)
        .default(100)
        .describe(
          'Approximate number of calls to return. Calls of the same millisecond are returned together.',
        ),
    }),
    answers: { 200: callsSchema },
  },
  listWarnings: {
    tag: 'status',
    summary: 'List the last 100 warnings of a group, the latest first',
    role: 'viewer',
    params,
    answers: { 200: warningsSchema },
    problems: [404],
  },
  listAllWarnings: {
    tag: 'status',
    summary: 'List the last warnings of all groups, the latest first',
    description:
      'Searches the last 200 warnings of all groups. The request queries only the directory, and wakes no group.',
    role: 'viewer',
    query: z.strictObject({
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(200)
        .default(50)
        .describe('Maximum number of warnings to return.'),
    }),
    answers: { 200: warningsSchema.pick({ warnings: true }) },
  },
});
