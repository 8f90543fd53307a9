import * as z from 'zod';
import { attentionListSchema } from '../attention.ts';
import { warningSchema } from '../warnings.ts';
import { groupStatusSchema, leaseSchema, waiterSchema } from './status-schemas.ts';

const count = z.int().min(0);
const groups = z.array(groupStatusSchema);
const version = count.describe('Version of the configuration.');
const paused = z.boolean().describe('Whether everything is paused.');

export const feedSnapshotSchema = z
  .object({ version, paused, groups: groups.describe('Every group, configured ones first.') })
  .describe('Everything, as `GET /status` tells it. The first event of every stream.');

export const feedGroupsSchema = z
  .object({
    groups: groups.describe('The groups that changed, whole.'),
    gone: z.array(z.string()).describe('Names of groups that are no more.'),
  })
  .describe('The groups that changed, at most once a second.');

export const feedDetailSchema = z
  .object({
    name: z.string().describe('Name of the group.'),
    leases: z.array(leaseSchema).describe('The first 200 leases, the oldest first.'),
    waiters: z.array(waiterSchema).describe('The first 200 waiters, the next one first.'),
    leases_total: count.describe('Leases that there are.'),
    waiters_total: count.describe('Waiters that there are.'),
    group: groupStatusSchema
      .nullable()
      .describe('The group itself at the same moment, whole. Null: there is none of that name.'),
  })
  .describe('The group that was asked for, with its first leases and waiters.');

/** Comes behind the snapshot, so that who opens the page after a warning sees it. */
const feedWarningsSchema = z.object({
  warnings: z.array(warningSchema).describe('The last 50 of all groups, the latest first.'),
});

/** Comes behind the snapshot, and when the list changes. */
const feedAttentionSchema = attentionListSchema.pick({ attention: true, left_out: true });

/** The configuration changed. */
const feedVersionSchema = z.object({ version, paused });

/** Comes every two seconds: without it the stream is dead. */
const feedBeatSchema = z.object({ at: z.iso.datetime().describe('When it was sent.') });

/** Schema of the `data` of each event of `GET /events`. */
export const FEED_EVENTS = {
  snapshot: feedSnapshotSchema,
  groups: feedGroupsSchema,
  detail: feedDetailSchema,
  attention: feedAttentionSchema,
  warnings: feedWarningsSchema,
  warning: warningSchema,
  version: feedVersionSchema,
  beat: feedBeatSchema,
};

/** Name of a kind of event. */
export type FeedEventName = keyof typeof FEED_EVENTS;
