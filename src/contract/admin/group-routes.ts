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

/** Query for one part of a list. Lists are sorted. */
export const pageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(1_000).default(100).describe('Most items of a page.'),
  cursor: z
    .string()
    .max(1_000)
    .optional()
    .describe('The `next_cursor` of the page before. Absent: the first page.'),
});

const name = z.string().min(1).max(300).describe('Name of the group, encoded.');
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
  member: z.string().min(1).max(300).describe('Id of the member, encoded.'),
});

/** A group as `PUT` takes it: its name stands in the path already. */
export const groupDocumentSchema = groupSchema
  .extend({ name: z.string().optional().describe('As in the path, or absent.') })
  .describe('A group; whatever is left out has its default.');

/** Any object: what it leads to is checked, not what it says. */
export const mergePatchSchema = z.record(z.string(), z.unknown());

/** Nothing at all means `first`. */
const promotionSchema = z.strictObject({
  lane: z.enum(LANES).optional().describe('Lane to put it into. Absent: it stays in its own.'),
  first: z
    .boolean()
    .optional()
    .describe('Puts it before everybody else. Absent: true, unless a lane is given.'),
});

/** Describes a route that sets a switch of a group, which is done in a hurry and mostly without a body. */
function switchOf(summary: string) {
  return {
    tag: 'groups',
    summary,
    description:
      'Automatic groups too, in all their pools and in those that there will be. The answer has their `name`, `paused` and `draining` alone.',
    role: 'operator',
    params,
    answers: { 200: switchedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  } as const;
}

/** Describes one that sets it on, for a while where the body says so. */
function switchOnOf(summary: string) {
  return { ...switchOf(summary), body: untilSchema, isBodyOptional: true } as const;
}

/** Groups, their leases and their waiters. */
export const GROUP_ROUTES = routes({
  listGroups: {
    tag: 'groups',
    summary: 'Configured groups with every default, by name',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('groups', groupSchema) },
    hasEtag: true,
  },
  getGroup: {
    tag: 'groups',
    summary: 'One configured group with every default',
    role: 'viewer',
    params,
    answers: { 200: groupSchema },
    hasEtag: true,
    problems: [404],
  },
  putGroup: {
    tag: 'groups',
    summary: 'Creates or replaces a group',
    description:
      'The same again changes nothing and makes no new version. With `until` or `for_s` the fields that it changes go back by themselves.',
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
    summary: 'Changes what is sent; null brings a default back',
    description:
      'A JSON merge patch (RFC 7396) of a `Group`. What it leads to must be one. An automatic group gets its own entry with that, as by `configure`. With `until` or `for_s` the fields that it changes go back by themselves; of fields that it names with the value that they have, only the time changes.',
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
    summary: 'Removes a group; calls that hold its slots go on to their end',
    role: 'admin',
    params,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
  configureGroup: {
    tag: 'groups',
    summary: 'Gives an automatic group an entry of its own, with the limit that it has now',
    description:
      'From then on it is changed like any other. It keeps its name, its calls, its pools and all that these have learned, hold and have queued; `DELETE` leaves it to itself again.',
    role: 'admin',
    params,
    answers: { 201: changedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404, 409],
  },
  pauseGroup: switchOnOf('Grants nothing until it is resumed; calls queue'),
  drainGroup: switchOnOf('Refuses new calls; queue and leases go on to their end'),
  resumeGroup: switchOf('Ends a pause and a drain'),
  relearnGroup: {
    tag: 'groups',
    summary: 'Forgets what was learned of the upstream, in all pools of a group',
    description:
      'Ends a pause that the upstream asked for, closes the breaker, and forgets the learned limit: for when its quota was raised or it is well again, and nobody wants to wait until Headgate has noticed. Automatic groups too. What was used of requests, tokens and budgets stays.',
    role: 'operator',
    params,
    answers: {
      200: z.object({
        group: z.string().describe('Name of the group.'),
        pools: z.int().min(0).describe('Pools that have forgotten.'),
        unreachable: unreachableSchema,
      }),
    },
    problems: [404],
  },
  takeOutMember: {
    tag: 'groups',
    summary: 'Switches a member off: it gets no calls until it is brought back',
    description:
      'Sets `enabled: false` of the member in the configuration, so it holds for all pools and for those that there will be. What is in flight there goes on to its end; calls that wait go to the other members.',
    role: 'operator',
    params: memberParams,
    answers: { 200: changedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
  bringBackMember: {
    tag: 'groups',
    summary: 'Gives a member calls again at once, whatever took it out',
    description:
      'Sets `enabled: true` of the member in the configuration, unless it is. Where a refusal took it out, that is forgotten in all pools that there are, and the next call finds out whether it serves again.',
    role: 'operator',
    params: memberParams,
    answers: {
      200: changedGroupSchema.extend({
        pools: z.int().min(0).describe('Pools in which no refusal keeps it out any more.'),
        unreachable: unreachableSchema,
      }),
    },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
  getGroupStatus: {
    tag: 'status',
    summary: 'The state of one group at this moment, automatic ones included',
    role: 'viewer',
    params,
    answers: { 200: groupStatusSchema },
    problems: [404],
  },
  listLeases: {
    tag: 'groups',
    summary: 'Who holds a slot, oldest first',
    role: 'viewer',
    params,
    answers: {
      200: z.object({
        leases: z.array(leaseSchema).describe('The oldest first.'),
        unreachable: unreachableSchema,
      }),
    },
    problems: [404],
  },
  releaseLease: {
    tag: 'groups',
    summary: 'Takes a slot back',
    description: 'The upstream call is aborted first; the slot returns after that.',
    role: 'operator',
    params: leaseParams,
    answers: {
      202: z.object({
        id: z.string().describe('Id of the lease.'),
        state: z.literal('revoking').describe('Its holder has been told.'),
      }),
    },
    problems: [404],
  },
  listWaiters: {
    tag: 'groups',
    summary: 'Who waits, in the order in which they will probably be granted',
    role: 'viewer',
    params,
    answers: {
      200: z.object({
        waiters: z.array(waiterSchema).describe('The next one first.'),
        waiting_elsewhere: waitingElsewhereSchema,
        unreachable: unreachableSchema,
      }),
    },
    problems: [404],
  },
  cancelWaiter: {
    tag: 'groups',
    summary: 'Takes a call out of the queue, which is refused as `cancelled`',
    role: 'operator',
    params: waiterParams,
    answers: {
      200: z.object({
        ticket: z.string().describe('Id of the ticket.'),
        state: z.literal('cancelled').describe('Its caller is being refused.'),
      }),
    },
    problems: [404],
  },
  promoteWaiter: {
    tag: 'groups',
    summary: 'Puts a call first, or into another lane, or both',
    role: 'operator',
    params: waiterParams,
    body: promotionSchema,
    isBodyOptional: true,
    answers: {
      200: z.object({
        ticket: z.string().describe('Id of the ticket.'),
        lane: z.enum(LANES).nullable().describe('The lane that was asked for. Null: none.'),
        first: z.boolean().describe('It was put first.'),
      }),
    },
    problems: [404],
  },
});
