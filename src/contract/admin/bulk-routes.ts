import * as z from 'zod';
import { changedSchema } from './answer-schemas.ts';
import { routes } from './route.ts';
import { leaseSchema, poolFailureSchema, waiterSchema } from './status-schemas.ts';

/** Maximum calls that one answer lists. */
const LISTED_MAX = 1_000;

const text = z.string().min(1).max(300);

/** Which calls are meant: those that everything fits that is said. */
const callFilter = {
  group: text.exactOptional().describe('Glob of groups, as in `openai-*`. Absent: all.'),
  tenant: text.exactOptional().describe('The tenant that they are charged to.'),
  agent: text.exactOptional().describe('The agent run.'),
  model: text.exactOptional().describe('The model.'),
  upstream: text.exactOptional().describe('The upstream that they go to.'),
};

const listQuery = z.strictObject({
  ...callFilter,
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(LISTED_MAX)
    .default(LISTED_MAX)
    .describe('Most calls of the answer.'),
});

const actQuery = z.strictObject({
  ...callFilter,
  dry_run: z
    .enum(['true', 'false'])
    .default('false')
    .describe('`true`: says how many there are, and does nothing.'),
});

const group = z.string().describe('The group.');
const unreachable = z.array(poolFailureSchema).describe('Pools that did not answer.');

const doneSchema = z.object({
  calls: z.int().min(0).describe('Calls that it was done to, or would be.'),
  groups: z
    .record(z.string(), z.int())
    .describe('How many of each group; a call with slots in several counts in each.'),
  dry_run: z.boolean().describe('Nothing was done.'),
  unreachable,
});

/** Describes a switch of the whole deployment. */
function switchOfAll(summary: string) {
  return {
    tag: 'groups',
    summary,
    description:
      'Sets `paused` at the top of the configuration. It holds for automatic groups and those that there will be, without any configured group too; what is in flight goes on to its end.',
    role: 'operator',
    answers: {
      200: changedSchema.extend({ paused: z.boolean().describe('Whether everything is paused.') }),
    },
    hasEtag: true,
    takesIfMatch: true,
  } as const;
}

/** Describes an act on the calls of several groups. */
function actOn(summary: string, description: string) {
  return {
    tag: 'groups',
    summary,
    description: `${description} At least one of \`tenant\`, \`agent\`, \`model\` and \`upstream\` must be said.`,
    role: 'operator',
    query: actQuery,
    answers: { 200: doneSchema },
  } as const;
}

/** Acts on several groups at once, and what all of them hold. */
export const BULK_ROUTES = routes({
  listAllLeases: {
    tag: 'groups',
    summary: 'Who holds a slot in all groups, oldest first',
    role: 'viewer',
    query: listQuery,
    answers: {
      200: z.object({
        leases: z.array(leaseSchema.extend({ group })).describe('The oldest first.'),
        total: z
          .int()
          .min(0)
          .describe('Leases that there are, listed or not: a call has one in each of its groups.'),
        unreachable,
      }),
    },
  },
  listAllWaiters: {
    tag: 'groups',
    summary: 'Who waits in all groups, the longest first',
    role: 'viewer',
    query: listQuery,
    answers: {
      200: z.object({
        waiters: z.array(waiterSchema.extend({ group })).describe('The longest first.'),
        total: z.int().min(0).describe('Calls that wait, listed or not.'),
        unreachable,
      }),
    },
  },
  releaseLeases: actOn(
    'Takes back the slots of all calls that are meant',
    'Each upstream call is aborted first; its slot returns after that.',
  ),
  cancelWaiters: actOn(
    'Takes all calls that are meant out of the queues',
    'Each is refused as `cancelled`, which is not to be tried again.',
  ),
  switchGroups: {
    tag: 'groups',
    summary: 'Pauses, drains or resumes several groups, in one change',
    role: 'operator',
    body: z.strictObject({
      groups: z
        .array(text)
        .min(1)
        .max(200)
        .describe(
          'Globs of groups; automatic ones too, as far as they are known or named in full. One that fits nothing is refused.',
        ),
      to: z.enum(['pause', 'drain', 'resume']).describe('Act to do to each.'),
    }),
    answers: {
      200: changedSchema.extend({
        groups: z.array(z.string()).describe('Names of the groups that it was done to.'),
      }),
    },
    hasEtag: true,
    takesIfMatch: true,
  },
  pauseEverything: switchOfAll(
    'Stops the whole deployment: no group grants anything until it is resumed',
  ),
  resumeEverything: switchOfAll('Ends the pause of the whole deployment; groups keep their own'),
});
