import * as z from 'zod';
import { warningSchema } from '../warnings.ts';
import { groupStatusSchema, leaseSchema, waiterSchema } from './status-schemas.ts';

const count = z.int().min(0);
const groups = z.array(groupStatusSchema);

/** Everything, as `GET /status` tells it. The first event of every stream. */
export const feedSnapshotSchema = z.object({ version: count, groups });

/** The groups that changed, at most once a second. */
export const feedGroupsSchema = z.object({
  groups,
  /** Names of groups that are no more. */
  gone: z.array(z.string()),
});

/** The first leases and waiters of the group that was asked for, and how many there are. */
export const feedDetailSchema = z.object({
  name: z.string(),
  leases: z.array(leaseSchema),
  waiters: z.array(waiterSchema),
  leases_total: count,
  waiters_total: count,
});

/** The configuration changed. */
const feedVersionSchema = z.object({ version: count });

/** Comes every two seconds: without it the stream is dead. */
const feedBeatSchema = z.object({ at: z.iso.datetime() });

/** What the `data` of each event of `GET /events` holds. */
export const FEED_EVENTS = {
  snapshot: feedSnapshotSchema,
  groups: feedGroupsSchema,
  detail: feedDetailSchema,
  warning: warningSchema,
  version: feedVersionSchema,
  beat: feedBeatSchema,
};

/** Name of a kind of event. */
export type FeedEventName = keyof typeof FEED_EVENTS;
