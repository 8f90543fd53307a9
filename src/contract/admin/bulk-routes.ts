import * as z from 'zod';
import { changedSchema } from './answer-schemas.ts';
import { routes } from './route.ts';
import { leaseSchema, poolFailureSchema, waiterSchema } from './status-schemas.ts';

/** Maximum length of a list of calls. */
const LISTED_MAX = 1_000;

const text = z.string().min(1).max(300);

/** Selects calls that match all given fields. */
const callFilter = {
  group: text
    .exactOptional()
    .describe('Pattern of groups, such as `openai-*`. Defaults to all groups.'),
  tenant: text.exactOptional().describe('Tenant that the calls are charged to.'),
  agent: text.exactOptional().describe('Agent run of the calls.'),
  model: text.exactOptional().describe('Model of the calls.'),
  upstream: text.exactOptional().describe('Upstream of the calls.'),
};

const listQuery = z.strictObject({
  ...callFilter,
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(LISTED_MAX)
    .default(LISTED_MAX)
    .describe('Maximum number of calls to return.'),
});

const actQuery = z.strictObject({
  ...callFilter,
  dry_run: z
    .enum(['true', 'false'])
    .default('false')
    .describe('`true` returns the number of calls, and changes nothing.'),
});

const group = z.string().describe('Name of the group.');
const unreachable = z.array(poolFailureSchema).describe('Pools that did not respond.');

const doneSchema = z.object({
  calls: z.int().min(0).describe('Number of affected calls.'),
  groups: z
    .record(z.string(), z.int())
    .describe('Affected calls by group. A call with slots in several groups counts in each.'),
  dry_run: z.boolean().describe('Whether this was a dry run.'),
  unreachable,
});

function switchOfAll(summary: string, effect: string) {
  return {
    tag: 'groups',
    summary,
    description: `${effect} Sets \`paused\` at the top of the configuration, which applies to configured, automatic and future groups. Calls in flight finish.`,
    role: 'operator',
    answers: {
      200: changedSchema.extend({
        paused: z.boolean().describe('Whether the whole deployment is paused.'),
      }),
    },
    hasEtag: true,
    takesIfMatch: true,
  } as const;
}

function actOn(summary: string, description: string) {
  return {
    tag: 'groups',
    summary,
    description: `${description} Requires at least one of \`tenant\`, \`agent\`, \`model\` and \`upstream\`.`,
    role: 'operator',
    query: actQuery,
    answers: { 200: doneSchema },
  } as const;
}

export const BULK_ROUTES = routes({
  listAllLeases: {
    tag: 'groups',
    summary: 'List the leases of all groups, the oldest first',
    role: 'viewer',
    query: listQuery,
    answers: {
      200: z.object({
        leases: z.array(leaseSchema.extend({ group })).describe('Leases, the oldest first.'),
        total: z
          .int()
          .min(0)
          .describe('Total number of leases, listed or not. A call has one in each of its groups.'),
        unreachable,
      }),
    },
  },
  listAllWaiters: {
    tag: 'groups',
    summary: 'List the queued calls of all groups, the oldest first',
    role: 'viewer',
    query: listQuery,
    answers: {
      200: z.object({
        waiters: z.array(waiterSchema.extend({ group })).describe('Waiters, the oldest first.'),
        total: z.int().min(0).describe('Total number of waiters, listed or not.'),
        unreachable,
      }),
    },
  },
  releaseLeases: actOn(
    'Revoke the slots of all matching calls',
    'Aborts each upstream call first. The slot becomes free after that.',
  ),
  cancelWaiters: actOn(
    'Remove all matching calls from their queues',
    'Each call is rejected as `cancelled`, which clients must not retry.',
  ),
  switchGroups: {
    tag: 'groups',
    summary: 'Pause, drain or resume several groups in one change',
    role: 'operator',
    body: z.strictObject({
      groups: z
        .array(text)
        .min(1)
        .max(200)
        .describe(
          'Patterns of groups, including automatic groups that exist or are named in full. A pattern without a match is rejected.',
        ),
      to: z.enum(['pause', 'drain', 'resume']).describe('Action to apply to each group.'),
    }),
    answers: {
      200: changedSchema.extend({
        groups: z.array(z.string()).describe('Names of the affected groups.'),
      }),
    },
    hasEtag: true,
    takesIfMatch: true,
  },
  pauseEverything: switchOfAll(
    'Pause the whole deployment',
    'No group starts calls until the deployment is resumed.',
  ),
  resumeEverything: switchOfAll('Resume the whole deployment', 'Groups keep their own pauses.'),
});
