import * as z from 'zod';

/** How long calls of a group are kept in its log. */
export const LOG_DAYS = 7;

/** The log that is kept of calls. */
export const callLogSchema = z.strictObject({
  days: z.int().min(0).max(30).default(LOG_DAYS).meta({
    description:
      'How long lines of calls can be found; a pool with very many lines keeps them for less. 0: the log is off.',
    unit: 'days',
  }),
  sample: z.number().min(0).max(1).default(0.1).meta({
    description:
      'Part of the calls that have a line though they were not slow, refused, retried or dear. All attempts of a call are in it, or none. In a minute it takes no more room than there is for all of the days.',
    unit: 'of calls',
  }),
  slow_ms: z.int().min(0).max(3_600_000).nullable().default(30_000).meta({
    description: 'A call that waited or ran so long has a line. Null: not for that.',
    unit: 'ms',
  }),
  cost_usd: z.number().min(0).max(1_000_000).nullable().default(0.25).meta({
    description: 'A call that cost so much has a line. Null: not for that.',
    unit: 'USD',
  }),
});

export type CallLogConfig = z.output<typeof callLogSchema>;
