import * as z from 'zod';

const checkReportSchema = z.object({
  id: z.string(),
  title: z.string(),
  result: z.enum(['pass', 'fail', 'skipped']),
  /** The measurement in a sentence or two. */
  found: z.string(),
  /** The conclusion, for people. */
  meaning: z.string(),
  figures: z.record(z.string(), z.json()),
});

export const reportSchema = z.object({
  schema: z.literal('headgate-canary/1'),
  url: z.url(),
  run: z.string(),
  started_at: z.iso.datetime(),
  ended_at: z.iso.datetime(),
  upstream: z.string().nullable(),
  checks: z.array(checkReportSchema),
  /** Requests of the run, for comparison with the bill. */
  sent: z.object({
    calls: z.int().min(0),
    admin_requests: z.int().min(0),
    calls_to_upstream: z.int().min(0),
  }),
  /** Groups that could not be removed. */
  groups_left: z.array(z.string()),
  passed: z.boolean(),
});

export type CheckReport = z.output<typeof checkReportSchema>;
export type CanaryReport = z.output<typeof reportSchema>;
