import * as z from 'zod';
import { LANES } from '../../core/words/ticket.ts';
import { groupSchema } from '../config/config.ts';
import {
  changedGroupSchema,
  changedSchema,
  pageOf,
  switchedGroupSchema,
} from './answer-schemas.ts';
import { routes } from './route.ts';
import {
  groupStatusSchema,
  leaseSchema,
  unreachableSchema,
  waiterSchema,
} from './status-schemas.ts';

/** Which part of a list; lists are sorted, and `cursor` is what the page before ended with. */
export const pageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
  cursor: z.string().max(1_000).optional(),
});

const name = z.string().min(1).max(300);
const params = z.strictObject({ name });
const leaseParams = z.strictObject({ name, id: z.string().min(1).max(300) });
const waiterParams = z.strictObject({ name, ticket: z.string().min(1).max(300) });

/** A group as `PUT` takes it: its name stands in the path already. */
export const groupDocumentSchema = groupSchema.extend({ name: z.string().optional() });

/** Any object: what it leads to is checked, not what it says. */
export const mergePatchSchema = z.record(z.string(), z.unknown());

/** Nothing at all means `first`. */
const promotionSchema = z.strictObject({
  lane: z.enum(LANES).optional(),
  first: z.boolean().optional(),
});

/** What sets a switch of a group, so that it is done in a hurry without a body. */
function switchOf(action: string, summary: string) {
  return {
    method: 'POST',
    path: `/groups/{name}/${action}`,
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

/** Groups, their leases and their waiters. */
export const GROUP_ROUTES = routes({
  listGroups: {
    method: 'GET',
    path: '/groups',
    tag: 'groups',
    summary: 'Configured groups with every default, by name',
    role: 'viewer',
    query: pageQuery,
    answers: { 200: pageOf('groups', groupSchema) },
    hasEtag: true,
  },
  getGroup: {
    method: 'GET',
    path: '/groups/{name}',
    tag: 'groups',
    summary: 'One configured group with every default',
    role: 'viewer',
    params,
    answers: { 200: groupSchema },
    hasEtag: true,
    problems: [404],
  },
  putGroup: {
    method: 'PUT',
    path: '/groups/{name}',
    tag: 'groups',
    summary: 'Creates or replaces a group',
    description: 'The same again changes nothing and makes no new version.',
    role: 'admin',
    params,
    body: groupDocumentSchema,
    answers: { 200: changedGroupSchema, 201: changedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
  },
  patchGroup: {
    method: 'PATCH',
    path: '/groups/{name}',
    tag: 'groups',
    summary: 'Changes what is sent; null brings a default back',
    description: 'A JSON merge patch (RFC 7396) of a `Group`. What it leads to must be one.',
    role: 'admin',
    params,
    body: mergePatchSchema,
    answers: { 200: changedGroupSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
  deleteGroup: {
    method: 'DELETE',
    path: '/groups/{name}',
    tag: 'groups',
    summary: 'Removes a group; calls that hold its slots go on to their end',
    role: 'admin',
    params,
    answers: { 200: changedSchema },
    hasEtag: true,
    takesIfMatch: true,
    problems: [404],
  },
  pauseGroup: switchOf('pause', 'Grants nothing until it is resumed; calls queue'),
  drainGroup: switchOf('drain', 'Refuses new calls; queue and leases go on to their end'),
  resumeGroup: switchOf('resume', 'Ends a pause and a drain'),
  relearnGroup: {
    method: 'POST',
    path: '/groups/{name}/relearn',
    tag: 'groups',
    summary: 'Forgets what was learned of the upstream, in all pools of a group',
    description:
      'Ends a pause that the upstream asked for, closes the breaker, and forgets the learned limit: for when its quota was raised or it is well again, and nobody wants to wait until Headgate has noticed. Automatic groups too. What was used of requests, tokens and budgets stays.',
    role: 'operator',
    params,
    answers: {
      200: z.object({ group: z.string(), pools: z.int().min(0), unreachable: unreachableSchema }),
    },
    problems: [404],
  },
  getGroupStatus: {
    method: 'GET',
    path: '/groups/{name}/status',
    tag: 'status',
    summary: 'The state of one group at this moment, automatic ones included',
    role: 'viewer',
    params,
    answers: { 200: groupStatusSchema },
    problems: [404],
  },
  listLeases: {
    method: 'GET',
    path: '/groups/{name}/leases',
    tag: 'groups',
    summary: 'Who holds a slot, oldest first',
    role: 'viewer',
    params,
    answers: { 200: z.object({ leases: z.array(leaseSchema), unreachable: unreachableSchema }) },
    problems: [404],
  },
  releaseLease: {
    method: 'DELETE',
    path: '/groups/{name}/leases/{id}',
    tag: 'groups',
    summary: 'Takes a slot back',
    description: 'The upstream call is aborted first; the slot returns after that.',
    role: 'operator',
    params: leaseParams,
    answers: { 202: z.object({ id: z.string(), state: z.literal('revoking') }) },
    problems: [404],
  },
  listWaiters: {
    method: 'GET',
    path: '/groups/{name}/waiters',
    tag: 'groups',
    summary: 'Who waits, in the order in which they will probably be granted',
    role: 'viewer',
    params,
    answers: { 200: z.object({ waiters: z.array(waiterSchema), unreachable: unreachableSchema }) },
    problems: [404],
  },
  cancelWaiter: {
    method: 'DELETE',
    path: '/groups/{name}/waiters/{ticket}',
    tag: 'groups',
    summary: 'Takes a call out of the queue, which is refused as `cancelled`',
    role: 'operator',
    params: waiterParams,
    answers: { 200: z.object({ ticket: z.string(), state: z.literal('cancelled') }) },
    problems: [404],
  },
  promoteWaiter: {
    method: 'POST',
    path: '/groups/{name}/waiters/{ticket}/promote',
    tag: 'groups',
    summary: 'Puts a call first, or into another lane, or both',
    role: 'operator',
    params: waiterParams,
    body: promotionSchema,
    isBodyOptional: true,
    answers: {
      200: z.object({ ticket: z.string(), lane: z.enum(LANES).nullable(), first: z.boolean() }),
    },
    problems: [404],
  },
});
