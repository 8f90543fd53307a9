import * as z from 'zod';
import { LANES } from '../../core/words/ticket.ts';
import { groupSchema } from '../config/group.ts';
import {
  changedGroupSchema,
  changedSchema,
  pageOf,
  switchedGroupSchema,
} from './answer-schemas.ts';
import { routes } from './route.ts';
import { untilQuery, untilSchema } from './until.ts';
import {
  groupStatusSchema,
  leaseSchema,
  unreachableSchema,
  waiterSchema,
  waitingElsewhereSchema,
} from './status-schemas.ts';

export const pageQuery = z.strictObject({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(100)
    .describe('Maximum number of items per page.'),
  cursor: z
    .string()
    .max(1_000)
    .optional()
    .describe('The `next_cursor` of the previous page. Absent for the first page.'),
});

const name = z.string().min(1).max(300).describe('URL-encoded name of the group.');
const params = z.strictObject({ name });
const leaseParams = z.strictObject({
  name,
  id: z.string().min(1).max(300).describe('Id of the lease.'),
});
const waiterParams = z.strictObject({
  name,
  ticket: z.string().min(1).max(300).describe('Id of the ticket.'),
});

const memberParams = z.strictObject({
  name,
  member: z.string().min(1).max(300).describe('URL-encoded id of the member.'),
});

/** A group as the body of `PUT`. The name is in the path. */
export const groupDocumentSchema = groupSchema
  .extend({ name: z.string().optional().describe('If present, the same as in the path.') })
  .describe('A group. Omitted fields have their defaults.');

/** Any object. The result of the patch is validated, not the patch. */
export const mergePatchSchema = z.record(z.string(), z.unknown());

/** An empty body means `first`. */
const promotionSchema = z.strictObject({
  lane: z.enum(LANES).optional().describe('New lane. Defaults to its current lane.'),
  first: z
    .boolean()
    .optional()
    .describe(
      'Whether to put it before all other waiters. Defaults to true, unless a lane is given.',
    ),
});

/** Describes a route that sets a switch of a group. Operators use these in a hurry, mostly without a body. */
function switchOf(summary: string, effect: string) {
  return {
    tag: 'groups',
    summary,
    description: `${effect} Also applies to automatic groups, in all their current and future pools. Their response contains only \`name\`, \`paused\` and \`draining\`.`,
    role: 'operator',
    params,
    answers: { 200: switchedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  } as const;
}

/** Describes a route that turns a switch on, optionally for a limited time. */
function switchOnOf(summary: string, effect: string) {
  return { ...switchOf(summary, effect), body: untilSchema, isBodyOptional: true } as const;
}

export const GROUP_ROUTES = routes({
  listGroups: {
    tag: 'groups',
    summary: 'List configured groups by name, with all defaults',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('groups', groupSchema) },
    hasEtag: true,
  },
  getGroup: {
    tag: 'groups',
    summary: 'Get a configured group with all defaults',
    role: 'viewer',
    params,
    answers: { 200: groupSchema },
    hasEtag: true,
    problems: [404],
  },
  putGroup: {
    tag: 'groups',
    summary: 'Create or replace a group',
    description:
      'Idempotent: the same document again creates no new version. With `until` or `for_s`, the changed fields revert automatically.',
    role: 'admin',
    params,
    query: untilQuery,
    body: groupDocumentSchema,
    answers: { 200: changedGroupSchema, 201: changedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
  },
  patchGroup: {
    tag: 'groups',
    summary: 'Change fields of a group',
    description:
      'A JSON merge patch (RFC 7396) of a `Group`. null restores the default of a field. The result must be a valid group. Patching an automatic group creates an entry for it, as `configure` does. With `until` or `for_s`, the changed fields revert automatically. For fields that already have the given value, only the end time changes.',
    role: 'admin',
    params,
    query: untilQuery,
    body: mergePatchSchema,
    answers: { 200: changedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
  deleteGroup: {
    tag: 'groups',
    summary: 'Remove a group',
    description: 'Calls that hold its slots finish.',
    role: 'admin',
    params,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
  configureGroup: {
    tag: 'groups',
    summary: 'Create an entry for an automatic group, with its current limit',
    description:
      'The group can then be changed like a configured one. It keeps its name, its calls, and the state of its pools. `DELETE` makes it automatic again.',
    role: 'admin',
    params,
    answers: { 201: changedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404, 409],
  },
  pauseGroup: switchOnOf('Pause a group', 'Calls are queued until the group is resumed.'),
  drainGroup: switchOnOf(
    'Drain a group',
    'New calls are rejected. Queued and running calls finish.',
  ),
  resumeGroup: switchOf('Resume a group', 'Ends a pause and a drain.'),
  relearnGroup: {
    tag: 'groups',
    summary: 'Discard what a group has learned about its upstream',
    description:
      'Ends a pause that the upstream asked for, closes the breaker, and discards the learned limit, in all pools. Use it after the quota was raised, or after the upstream has recovered. Also applies to automatic groups. Used requests, tokens and budgets stay as they are.',
    role: 'operator',
    params,
    answers: {
      200: z.object({
        group: z.string().describe('Name of the group.'),
        pools: z.int().min(0).describe('Number of affected pools.'),
        unreachable: unreachableSchema,
      }),
    },
    problems: [404],
  },
  takeOutMember: {
    tag: 'groups',
    summary: 'Disable a member',
    description:
      'The member gets no calls until it is restored. Sets `enabled: false` of the member in the configuration, for all current and future pools. Its calls in flight finish. Queued calls go to the other members.',
    role: 'operator',
    params: memberParams,
    answers: { 200: changedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
  bringBackMember: {
    tag: 'groups',
    summary: 'Restore a member that is disabled or ejected',
    description:
      'Sets `enabled: true` of the member in the configuration if necessary. If the member is ejected, all current pools end the ejection. The next call shows whether its upstream serves calls again.',
    role: 'operator',
    params: memberParams,
    answers: {
      200: changedGroupSchema.extend({
        pools: z.int().min(0).describe('Number of pools that have restored the member.'),
        unreachable: unreachableSchema,
      }),
    },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
  getGroupStatus: {
    tag: 'status',
    summary: 'Get the current state of a group, configured or automatic',
    role: 'viewer',
    params,
    answers: { 200: groupStatusSchema },
    problems: [404],
  },
  listLeases: {
    tag: 'groups',
    summary: 'List the leases of a group, the oldest first',
    role: 'viewer',
    params,
    answers: {
      200: z.object({
        leases: z.array(leaseSchema).describe('Leases, the oldest first.'),
        unreachable: unreachableSchema,
      }),
    },
    problems: [404],
  },
  releaseLease: {
    tag: 'groups',
    summary: 'Revoke a lease',
    description: 'Aborts the upstream call first. The slot becomes free after that.',
    role: 'operator',
    params: leaseParams,
    answers: {
      202: z.object({
        id: z.string().describe('Id of the lease.'),
        state: z.literal('revoking').describe('Its holder was notified.'),
      }),
    },
    problems: [404],
  },
  listWaiters: {
    tag: 'groups',
    summary: 'List the waiters of a group, in the order in which they will probably be granted',
    role: 'viewer',
    params,
    answers: {
      200: z.object({
        waiters: z.array(waiterSchema).describe('Waiters, the next one first.'),
        waiting_elsewhere: waitingElsewhereSchema,
        unreachable: unreachableSchema,
      }),
    },
    problems: [404],
  },
  cancelWaiter: {
    tag: 'groups',
    summary: 'Remove a call from the queue',
    description: 'The call is rejected as `cancelled`.',
    role: 'operator',
    params: waiterParams,
    answers: {
      200: z.object({
        ticket: z.string().describe('Id of the ticket.'),
        state: z.literal('cancelled').describe('The call is being rejected.'),
      }),
    },
    problems: [404],
  },
  promoteWaiter: {
    tag: 'groups',
    summary: 'Move a call to the front, into another lane, or both',
    role: 'operator',
    params: waiterParams,
    body: promotionSchema,
    isBodyOptional: true,
    answers: {
      200: z.object({
        ticket: z.string().describe('Id of the ticket.'),
        lane: z.enum(LANES).nullable().describe('Requested lane. null if there is none.'),
        first: z.boolean().describe('Whether it was moved to the front.'),
      }),
    },
    problems: [404],
  },
});
