import * as z from 'zod';
import { unreachable } from './pools.ts';
import type { AdminContext } from './context.ts';
import { type ChangeResult, type Edit, tryEdit } from './change.ts';
import type { LastHourEffect } from './calls-refused.ts';
import { steadyClock, mapConcurrently } from '../runtime/async.ts';
import { takesCalls, callRoute, type PlacedPool } from '../routing/pool.ts';
import { definedGroup } from '../routing/implied-groups.ts';
import { type PoolReply, askPools, readDirectory } from '../overview/pools.ts';
import { inSteps } from '../history/points.ts';
import { addCounts, emptyCounts, quantileMs } from '../core/parts/totals.ts';
import type { PoolPreview } from '../contract/rpc/feed-rpc.ts';
import { MINUTE_MS, auditChangeSchema, type HistoryPoint } from '../contract/history.ts';
import type { Config, GroupConfig } from '../contract/config/config.ts';
import { unreachableSchema } from '../contract/group-status.ts';
import { changesBetween } from '../config/document-changes.ts';

const count = z.int().min(0);

const slotCount = z.number().min(0).nullable();

const waitMs = z.number().min(0).nullable();

/** The fields that a change would change, as in the audit log. */
export const plannedSchema = z.object({
  version: z.int().min(0).describe('Version to which the change was compared.'),
  changes: z.array(auditChangeSchema).describe('Fields that would change.'),
  changes_omitted: count.describe('Number of changes that are not shown.'),
  warnings: z
    .array(z.string())
    .describe('Consequences of the change that you may not expect, one sentence each.'),
  refuses: z
    .object({
      calls: count.meta({ description: 'Number of all calls of the last hour.', unit: 'calls' }),
      is_part: z
        .boolean()
        .describe(
          'Whether some pools were not queried or did not respond. There may then be more calls.',
        ),
      refused: z
        .array(
          z.object({
            reason: z.string().describe('Reason, as in `headgate-reason`.'),
            group: z
              .string()
              .nullable()
              .describe(
                'Group, key (`key:…`) or team (`team:…`) of the budget. null if there is none.',
              ),
            calls: count.meta({
              description: 'Number of calls that would be rejected.',
              unit: 'calls',
            }),
            of: z
              .array(
                z.object({
                  key: z
                    .string()
                    .describe('Id of the gateway key, or fingerprint of the provider key.'),
                  upstream: z.string().describe('Upstream of the calls.'),
                  model: z.string().nullable().describe('Model. null if it is unknown.'),
                  calls: count.meta({ description: 'Number of these calls.', unit: 'calls' }),
                }),
              )
              .describe('Their keys and models, at most 20, those with the most calls first.'),
          }),
        )
        .describe('Calls by the reason for which they would be rejected.'),
    })
    .describe('Calls of the last hour that are allowed now, and that the change would reject.'),
});

/** Immediate effect of a change of a group. Figures of a split group cover all its pools. */
export const effectSchema = z.object({
  slots: z
    .object({
      from: slotCount.meta({ description: 'Slots now. null means unlimited.', unit: 'slots' }),
      to: slotCount.meta({
        description: 'Slots after the change. null means unlimited.',
        unit: 'slots',
      }),
    })
    .describe('Slots of one pool, including what was learned. The lowest value if pools differ.'),
  slots_gained: z.number().nullable().meta({
    description:
      'Slots gained over all pools. Negative if slots are lost. null if unlimited before or after.',
    unit: 'slots',
  }),
  in_use: count.meta({ description: 'Slots that calls hold.', unit: 'slots' }),
  in_use_above: count.meta({
    description: 'Slots in use above the new limit. Their calls finish.',
    unit: 'slots',
  }),
  members: z
    .array(
      z.object({
        member: z.string().describe('Id of the member.'),
        slots: z
          .object({
            from: slotCount.meta({
              description: 'Slots now. null means unlimited.',
              unit: 'slots',
            }),
            to: slotCount.meta({
              description: 'Slots after the change. null means unlimited.',
              unit: 'slots',
            }),
          })
          .describe(
            'Slots of the member in one pool, including what was learned. The lowest value if pools differ. 0 if the member does not exist, is disabled or is ejected.',
          ),
        in_use: count.meta({ description: 'Slots that calls hold there.', unit: 'slots' }),
      }),
    )
    .describe('Members of the group before or after the change. Their calls finish.'),
  queued: count.meta({ description: 'Number of queued calls.', unit: 'calls' }),
  granted_at_once: count.nullable().meta({
    description:
      'Queued calls that would start immediately. null if all of them are routed again first.',
    unit: 'calls',
  }),
  refused_at_once: count.meta({
    description:
      'Queued calls that would be rejected, because they need more slots than one call may take.',
    unit: 'calls',
  }),
  is_rerouted: z
    .boolean()
    .describe(
      'Whether calls may belong to other groups than before. All queued calls, in all groups, are routed again.',
    ),
  unreachable: unreachableSchema,
});

/** The last hour, compared with the new limit. */
export const lastHourSchema = z.object({
  in_use_max: z.number().min(0).meta({
    description: 'Maximum slots in use in one pool.',
    unit: 'slots',
  }),
  queued_max: z.number().min(0).meta({
    description: 'Maximum queue length of one pool.',
    unit: 'calls',
  }),
  minutes_above: count.meta({
    description: 'Minutes in which a pool had more slots in use than the new limit allows.',
    unit: 'minutes',
  }),
  granted: count.meta({ description: 'Number of granted calls.', unit: 'calls' }),
  wait_p50_ms: waitMs.meta({
    description: 'Median wait of the granted calls. null if there were none.',
    unit: 'ms',
  }),
  wait_p95_ms: waitMs.meta({
    description: '95th percentile of those waits. null if there were none.',
    unit: 'ms',
  }),
});

const HOUR_MS = 3_600_000;

/** Maximum number of groups with effects in a preview. The preview queries all pools of each of them. */
const EFFECTS_MAX = 10;

interface Effects {
  readonly now: z.output<typeof effectSchema>;
  readonly last_hour: z.output<typeof lastHourSchema>;
}

/** What one pool reports: the effect of the change now, and its last hour. */
interface PoolPreviewAnswer {
  readonly preview: PoolPreview;
  readonly points: readonly HistoryPoint[];
}

/** Previews a change of one key or team. Returns only warnings that the change causes. */
export async function previewOf(context: AdminContext, edit: Edit) {
  const standing = await tryEdit(context, { action: 'preview', next: (config) => config });
  const changed = await tryEdit(context, edit);
  const warnings = changed.warnings.filter((each) => !standing.warnings.includes(each));
  return {
    status: 200 as const,
    body: { ...planned(changed), warnings },
    version: changed.version,
  };
}

/** Queries the pools of groups that exist before and after a change, and that it changes, for its effect. */
export async function effectsOf(context: AdminContext, changed: ChangeResult) {
  const { before, config } = changed;
  const { pools } = await readDirectory(context.env);
  const old = new Map(before.groups.map((group) => [group.name, group]));
  const both = config.groups.flatMap((group) => {
    const was = old.get(group.name);
    return was === undefined || JSON.stringify(was) === JSON.stringify(group)
      ? []
      : [{ was, group }];
  });
  return mapConcurrently(both.slice(0, EFFECTS_MAX), 2, async ({ was, group }) => ({
    group: group.name,
    ...(await effectOf(context, changed, pools, was, group)),
  }));
}

export function planned({ version, before, config, warnings, lastHour: hour }: ChangeResult) {
  const { changes, omitted } = changesBetween(before, config);
  const refuses = shownRefusals(hour);
  return { version, changes: [...changes], changes_omitted: omitted, warnings, refuses };
}

/** Maximum number of kinds of calls in a preview, for each reason. */
const KINDS_SHOWN = 20;

function shownRefusals({
  calls,
  refused,
  isPart,
}: LastHourEffect): z.output<typeof plannedSchema>['refuses'] {
  return {
    calls,
    is_part: isPart,
    refused: refused.map(({ of, ...each }) => ({
      ...each,
      of: of
        .slice(0, KINDS_SHOWN)
        .map(([key, upstream, model, own]) => ({ key, upstream, model, calls: own })),
    })),
  };
}

export async function effectOf(
  { env }: AdminContext,
  { before, config }: ChangeResult,
  pools: readonly PlacedPool[],
  was: GroupConfig,
  group: GroupConfig,
): Promise<Effects> {
  const own = pools.filter((pool) => pool.group === group.name && takesCalls(pool, before));
  const definitionIn = (each: Config) => JSON.stringify(definedGroup(each, group.name));
  const now = steadyClock.now();
  const asked = await askPools(env, before, own, async (pool): Promise<PoolPreviewAnswer> => {
    const [preview, { points }] = await Promise.all([
      pool.preview(definitionIn(before), definitionIn(config)),
      pool.history(now - HOUR_MS, now, MINUTE_MS),
    ]);
    return { preview, points };
  });
  const answers = asked.flatMap((one) => ('answer' in one ? [one.answer] : []));
  return { now: effectNow(answers, asked, isRerouted(was, group)), last_hour: lastHour(answers) };
}

/** Returns whether a change moves calls to other groups. All queued calls are then routed again. */
function isRerouted(was: GroupConfig, group: GroupConfig): boolean {
  return JSON.stringify(callRoute(was)) !== JSON.stringify(callRoute(group));
}

function effectNow(
  answers: readonly PoolPreviewAnswer[],
  asked: readonly PoolReply<PoolPreviewAnswer>[],
  rerouted: boolean,
): Effects['now'] {
  const previews = answers.map(({ preview }) => preview);
  const sum = (of: (preview: PoolPreview) => number) =>
    previews.reduce((total, preview) => total + of(preview), 0);
  const isBounded = previews.every(({ slots }) => slots.from !== null && slots.to !== null);
  return {
    slots: {
      from: fewest(previews.map(({ slots }) => slots.from)),
      to: fewest(previews.map(({ slots }) => slots.to)),
    },
    slots_gained: isBounded ? sum(({ slots }) => (slots.to ?? 0) - (slots.from ?? 0)) : null,
    in_use: sum((preview) => preview.in_use),
    in_use_above: sum(({ in_use, slots }) => Math.max(0, in_use - (slots.to ?? Infinity))),
    members: effectOnMembers(previews),
    queued: sum((preview) => preview.queued),
    granted_at_once: rerouted ? null : sum((preview) => preview.granted),
    refused_at_once: sum((preview) => preview.refused),
    is_rerouted: rerouted,
    unreachable: unreachable(asked),
  };
}

function effectOnMembers(previews: readonly PoolPreview[]): Effects['now']['members'] {
  const all = previews.flatMap(({ members }) => members);
  return [...new Set(all.map(({ member }) => member))].map((member) => {
    const own = all.filter((each) => each.member === member);
    return {
      member,
      slots: {
        from: fewest(own.map(({ slots }) => slots.from)),
        to: fewest(own.map(({ slots }) => slots.to)),
      },
      in_use: own.reduce((total, { in_use }) => total + in_use, 0),
    };
  });
}

function fewest(slots: readonly (number | null)[]): number | null {
  const bounded = slots.filter((each) => each !== null);
  return bounded.length === 0 ? null : Math.min(...bounded);
}

function lastHour(answers: readonly PoolPreviewAnswer[]): Effects['last_hour'] {
  const above = new Set<number>();
  let waits: readonly number[] = emptyCounts();
  const most = { in_use_max: 0, queued_max: 0, granted: 0 };
  for (const { preview, points } of answers) {
    const limit = preview.slots.to ?? Infinity;
    for (const point of inSteps(points, MINUTE_MS)) {
      if (point.inUseMax > limit) above.add(point.at);
      most.in_use_max = Math.max(most.in_use_max, point.inUseMax);
      most.queued_max = Math.max(most.queued_max, point.queuedMax);
      most.granted += point.granted;
      waits = addCounts(waits, point.waits);
    }
  }
  return {
    ...most,
    minutes_above: above.size,
    wait_p50_ms: quantileMs(waits, 0.5),
    wait_p95_ms: quantileMs(waits, 0.95),
  };
}
