import * as z from 'zod';
import { fromInstant, groupParams, partitionName, toInstant } from '../shapes.ts';
import { route } from '../route.ts';
import { askGroup, unreachable } from '../pools.ts';
import { directoryOf } from '../../env.ts';
import { DECISIONS_MAX } from '../../core/parts/decision-log.ts';
import { warningSchema } from '../../contract/attention.ts';
import {
  type DecisionFilter,
  decisionInfoSchema,
  outcomeSchema,
} from '../../contract/decisions.ts';
import { unreachableSchema } from '../../contract/group-status.ts';

export const decisionSchema = decisionInfoSchema
  .extend({ partition: partitionName.describe('Partition. null if the group is not split.') })
  .describe('A decision of a group, and how the call ended. docs/metrics.md explains the values.');

export const decisionsSchema = z.object({
  decisions: z.array(decisionSchema).describe('Decisions, the latest first.'),
  unreachable: unreachableSchema,
});

export const warningsSchema = z.object({
  warnings: z.array(warningSchema).describe('Warnings, the latest first.'),
  unreachable: unreachableSchema,
});

export const decisionsQuery = z.strictObject({
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
});

/** Maximum number of stored warnings of a pool, and of warnings in a response about several pools. */
const WARNINGS_MAX = 100;

export const DECISION_ROUTES = {
  listDecisions: route('GET /groups/{name}/decisions', {
    tag: 'status',
    summary: 'List the decisions of a group, the latest first',
    role: 'viewer',
    params: groupParams,
    query: decisionsQuery,
    answers: { 200: decisionsSchema },
    problems: [404],
  }).servedBy(async ({ context, params: { name }, query }) => {
    const filter = filterOf(query);
    const asked = await askGroup(context, name, (pool) => pool.decisions(filter));
    const decisions = asked.flatMap((one) =>
      'answer' in one ? one.answer.map((each) => ({ partition: one.pool.partition, ...each })) : [],
    );
    decisions.sort((a, b) => latestFirst(a.decided_at, b.decided_at));
    const body = { decisions: decisions.slice(0, query.limit), unreachable: unreachable(asked) };
    return { status: 200, body };
  }),

  listWarnings: route('GET /groups/{name}/warnings', {
    tag: 'status',
    summary: 'List the last 100 warnings of a group, the latest first',
    role: 'viewer',
    params: groupParams,
    answers: { 200: warningsSchema },
    problems: [404],
  }).servedBy(async ({ context, params: { name } }) => {
    const asked = await askGroup(context, name, (pool) => pool.warnings());
    const warnings = asked.flatMap((one) => ('answer' in one ? one.answer : []));
    warnings.sort((a, b) => latestFirst(a.at, b.at));
    const body = { warnings: warnings.slice(0, WARNINGS_MAX), unreachable: unreachable(asked) };
    return { status: 200, body };
  }),

  listAllWarnings: route('GET /warnings', {
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
  }).servedBy(async ({ context, query }) => {
    const warnings = await directoryOf(context.env).warnings(query.limit);
    return { status: 200, body: { warnings } };
  }),
};

function latestFirst(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? 1 : -1;
}

function filterOf(query: z.output<typeof decisionsQuery>): DecisionFilter {
  const { lease, from, to, outcome, limit } = query;
  return {
    limit,
    ...(lease === undefined ? {} : { ids: lease.split(',').map((id) => id.trim()) }),
    ...(from === undefined ? {} : { fromMs: from }),
    ...(to === undefined ? {} : { toMs: to }),
    ...(outcome === undefined ? {} : { decided: outcome }),
  };
}
