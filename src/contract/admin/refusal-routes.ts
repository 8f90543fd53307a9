import * as z from 'zod';
import { refusalCountSchema } from '../refusals.ts';
import { queryInstant } from './observation-routes.ts';
import { routes } from './route.ts';

const refusalSchema = refusalCountSchema.extend({
  advice: z.string().describe('What to check or change, so that such calls are served.'),
});

const refusalsSchema = z.object({
  since: z.iso.datetime().describe('Start of the time that the sums cover.'),
  count: z.int().min(0).describe('Number of refused calls that match.'),
  refusals: z
    .array(refusalSchema)
    .describe('The same facts have one row. The reason with the most calls comes first.'),
  left_out: z.int().min(0).describe('Rows beyond `limit`.'),
});

const name = z.string().trim().min(1).max(300).optional();

/** Calls that Headgate itself refused. */
export const REFUSAL_ROUTES = routes({
  listRefusals: {
    tag: 'status',
    summary: 'Calls that Headgate itself refused, of the last hour, by reason',
    description:
      'Counts each error of Headgate that a caller received, whether a group refused the call or the call never reached one. Errors of upstreams are not listed. Sums arrive within about ten seconds. It asks the directory alone, and wakes no group.',
    role: 'viewer',
    query: z.strictObject({
      q: name.describe(
        'A request id, key, team, group, upstream, model or reason: rows in which one of them contains it.',
      ),
      reason: name.describe('Only this reason.'),
      key: name.describe('Only this gateway key, or provider key by its fingerprint.'),
      team: name.describe('Only keys of this team.'),
      group: name.describe('Only this group.'),
      upstream: name.describe('Only this upstream.'),
      since: queryInstant
        .optional()
        .describe('From this instant on: RFC 3339, or epoch milliseconds. Absent: the last hour.'),
      limit: z.coerce.number().int().min(1).max(500).default(100).describe('Maximum rows.'),
    }),
    answers: { 200: refusalsSchema },
  },
});
