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
  name: z.string().min(1).max(300).describe('Name of the group, encoded.'),
});

/** An instant in a query: RFC 3339, or epoch milliseconds. */
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
  .describe('From this instant on: RFC 3339, or epoch milliseconds.');
const toInstant = queryInstant
  .optional()
  .describe('Before this instant: RFC 3339, or epoch milliseconds. Absent: now.');

const EVENTS = `Server-sent events, each with JSON as its data. \`snapshot\` comes first and is what \`GET /status\` answers.
Then, at most once a second, \`groups\`: those that changed, and names of those that are \`gone\`. With \`group\` also
\`detail\`: its first 200 leases and waiters. \`attention\`, what needs a person, when that changes. \`warning\` when one is raised, \`version\` when the configuration changed,
and \`beat\` every two seconds. A stream that breaks off or ends is opened anew, and begins with a snapshot.`;

/** A text that a call is found by. */
const name = z.string().trim().min(1).max(500).optional();

const CALLS = `Each call that was slow, refused, retried or dear has a line in each of its groups, and a sample of the rest;
\`log\` of the group says which, and for how long. Pools that were not used since \`from\` are not asked. Calls that are in
flight, or have ended a moment ago, are found by a name of their own too. Never prompts or answers.`;

/** Why calls of a group were granted, held up or refused, what it did over time, and what it warned of. */
export const OBSERVATION_ROUTES = routes({
  getHistory: {
    tag: 'status',
    summary: 'What a group did over time, of the last 30 days',
    description:
      'Without a query: the last hour by the minute. Points of a minute are kept for a day, of 15 minutes for 30 days.',
    role: 'viewer',
    params,
    query: z.strictObject({
      from: fromInstant,
      to: toInstant,
      step: z.coerce.number().int().min(60).max(2_592_000).multipleOf(60).optional().meta({
        description: 'Length of a step, a multiple of 60. Absent: by the length of the time.',
        unit: 's',
      }),
      partition: z
        .string()
        .max(1_000)
        .optional()
        .describe('One partition of a split group. Absent: all of them together.'),
    }),
    answers: { 200: historySchema },
    problems: [404],
  },
  streamEvents: {
    tag: 'status',
    summary: 'What happens in the groups, live',
    description: EVENTS.replaceAll('\n', ' '),
    role: 'viewer',
    query: z.strictObject({
      group: z
        .string()
        .min(1)
        .max(300)
        .optional()
        .describe('The group whose leases and waiters are told besides. Absent: none.'),
    }),
    answers: { 200: 'text' },
    contentType: 'text/event-stream',
  },
  listDecisions: {
    tag: 'status',
    summary: 'Why calls were granted, held up or refused, latest first',
    role: 'viewer',
    params,
    query: z.strictObject({
      lease: z
        .string()
        .min(1)
        .max(2_000)
        .optional()
        .describe('The header `headgate-lease` as it is, or a ticket.'),
      from: fromInstant,
      to: toInstant,
      outcome: outcomeSchema.optional().describe('Only decisions of that kind.'),
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(DECISIONS_MAX)
        .default(100)
        .describe('Most decisions of the answer.'),
    }),
    answers: { 200: decisionsSchema },
    problems: [404],
  },
  findCalls: {
    tag: 'status',
    summary: 'Calls of all groups, from the log that is kept of them, latest first',
    description: CALLS.replaceAll('\n', ' '),
    role: 'viewer',
    query: z.strictObject({
      q: name.describe(
        'A lease or ticket, an agent run, a tenant, a key, a model, or the id that the upstream gave the call. The header `headgate-lease` as it is.',
      ),
      lease: name.describe('The header `headgate-lease` as it is, or a ticket.'),
      agent: name.describe('The agent run.'),
      tenant: name.describe('The tenant.'),
      key: name.describe('Id of a gateway key, or fingerprint of a provider key.'),
      model: name.describe('The model, as the call named it.'),
      request_id: name.describe("The upstream's own id of the call."),
      group: z.string().min(1).max(300).optional().describe('Only calls in this group.'),
      outcome: callOutcomeSchema.optional().describe('Only calls that ended so.'),
      from: queryInstant
        .optional()
        .describe('From this instant on: RFC 3339, or epoch milliseconds. Absent: 7 days before.'),
      to: toInstant,
      cursor: z
        .string()
        .regex(/^\d{1,15}$/, 'expected the `next_cursor` of an answer')
        .transform(Number)
        .optional()
        .describe('The `next_cursor` of the answer before this one, with all else as it was.'),
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(500)
        .default(100)
        .describe('About how many calls the answer has: those of one millisecond come together.'),
    }),
    answers: { 200: callsSchema },
  },
  listWarnings: {
    tag: 'status',
    summary: 'What a group warned of, the last 100, latest first',
    role: 'viewer',
    params,
    answers: { 200: warningsSchema },
    problems: [404],
  },
  listAllWarnings: {
    tag: 'status',
    summary: 'What all groups warned of last, latest first',
    description:
      'Of the last 200 over all groups. It asks the directory alone, and wakes no group.',
    role: 'viewer',
    query: z.strictObject({
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(200)
        .default(50)
        .describe('Most warnings of the answer.'),
    }),
    answers: { 200: warningsSchema.pick({ warnings: true }) },
  },
});
