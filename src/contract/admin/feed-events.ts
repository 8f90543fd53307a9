import * as z from 'zod';
import { attentionListSchema } from '../attention.ts';
import { warningSchema } from '../warnings.ts';
import { groupStatusSchema, leaseSchema, waiterSchema } from './status-schemas.ts';

const count = z.int().min(0);
const groups = z.array(groupStatusSchema);
const version = count.describe('Version of the configuration.');
const paused = z.boolean().describe('Whether the whole deployment is paused.');

export const feedSnapshotSchema = z
  .object({ version, paused, groups: groups.describe('All groups, configured ones first.') })
  .describe('The same as `GET /status`. The first event of every stream.');

export const feedGroupsSchema = z
  .object({
    groups: groups.describe('Changed groups, in full.'),
    gone: z.array(z.string()).describe('Names of removed groups.'),
  })
  .describe('Changed groups, at most once a second.');

export const feedDetailSchema = z
  .object({
    name: z.string().describe('Name of the group.'),
    leases: z.array(leaseSchema).describe('The first 200 leases, the oldest first.'),
    waiters: z.array(waiterSchema).describe('The first 200 waiters, the next one first.'),
    leases_total: count.describe('Total number of leases.'),
    waiters_total: count.describe('Total number of waiters.'),
    group: groupStatusSchema
      .nullable()
      .describe('State of the group at the same moment, in full. null if there is no such group.'),
  })
  .describe('The requested group, with its first leases and waiters.');

/** Follows the snapshot, so that a page opened after a warning shows it. */
const feedWarningsSchema = z.object({
  warnings: z
    .array(warningSchema)
    .describe('The last 50 warnings of all groups, the latest first.'),
});

/** Follows the snapshot, and every change of the list. */
const feedAttentionSchema = attentionListSchema.pick({ attention: true, left_out: true });

/** Sent when the configuration changed. */
const feedVersionSchema = z.object({ version, paused });

/** Sent every two seconds. A stream without it is dead. */
const feedBeatSchema = z.object({ at: z.iso.datetime().describe('Time of sending.') });

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

export type FeedEventName = keyof typeof FEED_EVENTS;
