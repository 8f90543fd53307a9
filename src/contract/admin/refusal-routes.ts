import * as z from 'zod';
import { refusalCountSchema } from '../refusals.ts';
import { queryInstant } from './observation-routes.ts';
import { routes } from './route.ts';

const refusalSchema = refusalCountSchema.extend({
  advice: z.string().describe('What to check or change so that such calls are served.'),
});

const refusalsSchema = z.object({
  since: z.iso.datetime().describe('Start of the covered period.'),
  count: z.int().min(0).describe('Number of matching rejected calls.'),
  refusals: z
    .array(refusalSchema)
    .describe('Rows of calls with the same facts. The reason with the most calls comes first.'),
  left_out: z.int().min(0).describe('Number of rows beyond `limit`.'),
});

const name = z.string().trim().min(1).max(300).optional();

export const REFUSAL_ROUTES = routes({
  listRefusals: {
    tag: 'status',
    summary: 'List calls that Headgate rejected in the last hour, by reason',
    description:
      'Counts each error of Headgate that a caller received, whether a group rejected the call or it never reached one. Errors of upstreams are not listed. Counts appear within about ten seconds. The request queries only the directory, and wakes no group.',
    role: 'viewer',
    query: z.strictObject({
      q: name.describe(
        'Text that a request id, key, team, group, upstream, model or reason contains.',
      ),
      reason: name.describe('Return only this reason.'),
      key: name.describe('Return only this gateway key, or provider key by its fingerprint.'),
      team: name.describe('Return only keys of this team.'),
      group: name.describe('Return only this group.'),
      upstream: name.describe('Return only this upstream.'),
      since: queryInstant
        .optional()
        .describe(
          'Start of the period: RFC 3339, or epoch milliseconds. Defaults to the last hour.',
        ),
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(500)
        .default(100)
        .describe('Maximum number of rows.'),
    }),
    answers: { 200: refusalsSchema },
  },
});
