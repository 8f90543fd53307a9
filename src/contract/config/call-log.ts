import * as z from 'zod';

export const LOG_DAYS = 7;

export const callLogSchema = z.strictObject({
  days: z.int().min(0).max(30).default(LOG_DAYS).meta({
    description:
      'How long logged calls can be found. A pool with very many entries keeps them for less time. 0 disables the log.',
    unit: 'days',
  }),
  sample: z.number().min(0).max(1).default(0.1).meta({
    description:
      'Share of the calls that no other rule logs: calls that are not slow, refused, retried or expensive. All attempts of a call are logged, or none. The number per minute is limited, so that the log has space for all `days`.',
    unit: 'of calls',
  }),
  slow_ms: z.int().min(0).max(3_600_000).nullable().default(30_000).meta({
    description: 'Log calls that waited or ran at least this long. null disables this rule.',
    unit: 'ms',
  }),
  cost_usd: z.number().min(0).max(1_000_000).nullable().default(0.25).meta({
    description: 'Log calls that cost at least this much. null disables this rule.',
    unit: 'USD',
  }),
});

export type CallLogConfig = z.output<typeof callLogSchema>;
