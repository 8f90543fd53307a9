import * as z from 'zod';
import { queryInstant } from '../shapes.ts';
import { invalid, route } from '../route.ts';
import { currentSnapshot } from '../change.ts';
import { resolveUpstreams } from '../../routing/upstreams.ts';
import { KEY_PREFIX, TEAM_PREFIX } from '../../routing/implied-groups.ts';
import { BUILT_IN_UPSTREAMS } from '../../providers/catalog.ts';
import { directoryOf } from '../../env.ts';
import { summedRefusals } from '../../core/parts/refusal-rows.ts';
import {
  REASON_NAMES,
  REFUSALS_KEPT_MS,
  refusalCountSchema,
  REFUSAL_ADVICE,
  type RefusalCount,
} from '../../contract/reasons.ts';
import { AUTO_PREFIX } from '../../contract/pool-name.ts';
import type { Config } from '../../contract/config/config.ts';
import { nearestNames } from '../../config/explain-issues.ts';
import { type FieldError, quoteName } from '../../config/field-error.ts';

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

const searched = z.string().trim().min(1).max(300).optional();

export const refusalsQuery = z.strictObject({
  q: searched.describe(
    'Text that a request id, key, team, group, upstream, model or reason contains.',
  ),
  reason: searched.describe('Return only this reason.'),
  key: searched.describe('Return only this gateway key, or provider key by its fingerprint.'),
  team: searched.describe('Return only keys of this team.'),
  group: searched.describe('Return only this group.'),
  upstream: searched.describe('Return only this upstream.'),
  since: queryInstant
    .optional()
    .describe('Start of the period: RFC 3339, or epoch milliseconds. Defaults to the last hour.'),
  limit: z.coerce.number().int().min(1).max(500).default(100).describe('Maximum number of rows.'),
});

type RefusalQuery = z.output<typeof refusalsQuery>;

const FILTERS = ['reason', 'key', 'team', 'group', 'upstream'] as const;

export const REFUSAL_ROUTES = {
  listRefusals: route('GET /refusals', {
    tag: 'status',
    summary: 'List calls that Headgate rejected in the last hour, by reason',
    description:
      'Counts each error of Headgate that a caller received, whether a group rejected the call or it never reached one. Errors of upstreams are not listed. Counts appear within about ten seconds. The request queries only the directory, and wakes no group.',
    role: 'viewer',
    query: refusalsQuery,
    answers: { 200: refusalsSchema },
  }).servedBy(async ({ context, query }) => {
    const { env } = context;
    const since = Math.max(query.since ?? 0, Date.now() - REFUSALS_KEPT_MS);
    const [{ config }, counts] = await Promise.all([
      currentSnapshot(env),
      directoryOf(env).refusals(since),
    ]);
    const errors = unknownNames(query, counts, config);
    if (errors.length > 0) throw invalid(errors);
    const matches = fitting(query);
    const rows = summed(counts.filter(matches));
    const shown = rows.slice(0, query.limit);
    const body = {
      since: new Date(since).toISOString(),
      count: rows.reduce((sum, { count }) => sum + count, 0),
      refusals: shown.map((row) => ({
        ...row,
        request_ids: [...row.request_ids],
        advice: REFUSAL_ADVICE[row.reason],
      })),
      left_out: rows.length - shown.length,
    };
    return { status: 200, body };
  }),
};

/** Combines the rows of each minute. Rows of the most frequent reason come first, sorted by their counts. */
function summed(counts: readonly RefusalCount[]): RefusalCount[] {
  const rows = summedRefusals(counts);
  const ofReason = new Map<string, number>();
  for (const { reason, count } of rows) ofReason.set(reason, (ofReason.get(reason) ?? 0) + count);
  return rows.toSorted(
    (a, b) =>
      (ofReason.get(b.reason) ?? 0) - (ofReason.get(a.reason) ?? 0) ||
      a.reason.localeCompare(b.reason) ||
      b.count - a.count,
  );
}

function fitting({ q, ...filters }: RefusalQuery): (one: RefusalCount) => boolean {
  const wanted = q?.toLowerCase();
  return (one) => {
    if (FILTERS.some((name) => filters[name] !== undefined && one[name] !== filters[name])) {
      return false;
    }
    if (wanted === undefined) return true;
    const { reason, key, team, group, upstream, model, request_ids: ids } = one;
    return [reason, key, team, group, upstream, model, ...ids].some(
      (text) => text?.toLowerCase().includes(wanted) === true,
    );
  };
}

/**
 * Returns errors for filters with unknown names, because a misspelled name would look like an absence of rejections.
 */
function unknownNames(
  query: RefusalQuery,
  counts: readonly RefusalCount[],
  config: Config,
): FieldError[] {
  return FILTERS.flatMap((path) => {
    const name = query[path];
    if (name === undefined) return [];
    const known = knownNames(path, config);
    for (const one of counts) {
      const seen = one[path];
      if (seen !== null) known.add(seen);
    }
    if (known.has(name)) return [];
    const near = nearestNames(name, [...known]).map((each) => `\`${each}\``);
    const hint = near.length === 0 ? '' : ` Did you mean ${near.join(', ')}?`;
    const message = `${quoteName(name)} is not configured, and no rejected call has it.${hint}`;
    return [{ path, message }];
  });
}

function knownNames(path: (typeof FILTERS)[number], config: Config): Set<string> {
  const { keys, teams, groups, auto_groups: automatic } = config;
  const upstreams = [...resolveUpstreams(config, BUILT_IN_UPSTREAMS).keys()];
  switch (path) {
    case 'reason':
      return new Set(REASON_NAMES);
    case 'key':
      return new Set(keys.map(({ id }) => id));
    case 'team':
      return new Set([...teams.map(({ id }) => id), ...keys.flatMap(({ team }) => team ?? [])]);
    case 'group':
      return new Set([
        ...[...groups, ...automatic].map(({ name }) => name),
        ...upstreams.map((id) => AUTO_PREFIX + id),
        ...keys.map(({ id }) => KEY_PREFIX + id),
        ...teams.map(({ id }) => TEAM_PREFIX + id),
      ]);
    case 'upstream':
      return new Set(upstreams);
  }
}
