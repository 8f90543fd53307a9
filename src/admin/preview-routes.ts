import type * as z from 'zod';
import type { groupPreviewSchema } from '../contract/admin/preview-routes.ts';
import { rollbackSchema } from '../contract/admin/version-routes.ts';
import { changesBetween } from '../config/document-changes.ts';
import type { PoolPreview } from '../contract/rpc/change-preview.ts';
import type { Config, GroupConfig } from '../contract/config/config.ts';
import { MINUTE_MS, type HistoryPoint } from '../contract/history.ts';
import { inSteps } from '../history/points.ts';
import { definedGroup } from '../routing/key-groups.ts';
import { takesCalls, callRoute, type PlacedPool } from '../routing/pool.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import { mapConcurrently } from '../runtime/async.ts';
import { steadyClock } from '../runtime/clock.ts';
import { addCounts, emptyCounts, quantileMs } from '../core/parts/histogram.ts';
import { askPools, readDirectory, type PoolReply } from '../overview/pools.ts';
import { meeting, replacedBy } from '../routing/overlaps.ts';
import { resolveUpstreams } from '../routing/upstreams.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import type { LastHourEffect } from './calls-refused.ts';
import { tryEdit, type ChangeResult, type Edit } from './change.ts';
import { keyPreviewEdit } from './key-routes.ts';
import { teamPreviewEdit } from './team-routes.ts';
import { currentSnapshot } from './snapshot.ts';
import { importEdit } from './import-edit.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { groupEdit, patching, putting, requireGroup } from './group-routes.ts';
import { unreachable } from './pools.ts';
import { check, readDocument, serve } from './serve.ts';
import { reported, rollbackTarget } from './version-routes.ts';

const HOUR_MS = 3_600_000;

/** Maximum number of groups with effects in a preview. The preview queries all pools of each of them. */
const EFFECTS_MAX = 10;

type ShownPreview = z.output<typeof groupPreviewSchema>;

interface Effects {
  readonly now: NonNullable<ShownPreview['now']>;
  readonly last_hour: NonNullable<ShownPreview['last_hour']>;
}

/** What one pool reports: the effect of the change now, and its last hour. */
interface PoolPreviewAnswer {
  readonly preview: PoolPreview;
  readonly points: readonly HistoryPoint[];
}

export function addPreviewRoutes(app: AdminApp): void {
  serve(app, 'previewConfig', async ({ context, query }) => {
    const document = await readDocument(context);
    const { changed, warnings, conflicts, effects } =
      query.as === 'rollback'
        ? await tryRollback(context, check(rollbackSchema, document))
        : await tryImport(context, document);
    const groups = changed.config.groups.map((group) => group.name);
    const body = { ...planned(changed), groups, warnings, conflicts: [...conflicts], effects };
    return { status: 200, body, version: changed.version };
  });

  serve(app, 'previewGroup', async ({ context, params: { name }, query, body: document }) => {
    const edited = query.as === 'put' ? putting(name, document) : patching(name, document);
    const changed = await tryEdit(context, groupEdit(name, 'preview', edited));
    const { before, config } = changed;
    const { pools } = await readDirectory(context.env);
    const was = before.groups.find((group) => group.name === name);
    const group = requireGroup(config, name);
    const automatic = pools
      .map((pool) => pool.group)
      .filter((each) => each.startsWith(AUTO_PREFIX));
    const body = {
      ...planned(changed),
      group,
      ...(was === undefined
        ? { now: null, last_hour: null }
        : await effectOf(context, changed, pools, was, group)),
      overlaps_with: { from: meeting(before, name), to: meeting(config, name) },
      takes_from: newlyReplaced(was, group, [...new Set(automatic)], config),
    };
    return { status: 200, body, version: changed.version };
  });

  serve(app, 'previewKey', async ({ context, params: { id }, query, body }) => {
    const { config } = await currentSnapshot(context.env);
    return previewOf(context, keyPreviewEdit(id, query.as, body, config));
  });

  serve(app, 'previewTeam', ({ context, params: { id }, body }) =>
    previewOf(context, teamPreviewEdit(id, body)),
  );
}

/** Previews a change of one key or team. Returns only warnings that the change causes. */
async function previewOf(context: AdminContext, edit: Edit) {
  const standing = await tryEdit(context, { action: 'preview', next: (config) => config });
  const changed = await tryEdit(context, edit);
  const warnings = changed.warnings.filter((each) => !standing.warnings.includes(each));
  return {
    status: 200 as const,
    body: { ...planned(changed), warnings },
    version: changed.version,
  };
}

async function tryImport(context: AdminContext, document: unknown) {
  const { edit, warningsOf } = importEdit(document);
  const changed = await tryEdit(context, edit);
  return { changed, warnings: warningsOf(changed), conflicts: [], effects: [] };
}

async function tryRollback(context: AdminContext, request: z.output<typeof rollbackSchema>) {
  const { edit, outcome } = await rollbackTarget(context.env, request, true);
  const changed = await tryEdit(context, edit);
  // A preview lists conflicts in a separate field.
  const warnings = reported({ ...outcome(), conflicts: [] }, changed.warnings, false);
  const effects = await effectsOf(context, changed);
  return { changed, warnings, conflicts: outcome().conflicts, effects };
}

/** Queries the pools of groups that exist before and after a change, and that it changes, for its effect. */
async function effectsOf(context: AdminContext, changed: ChangeResult) {
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

function planned({ version, before, config, warnings, lastHour: hour }: ChangeResult) {
  const { changes, omitted } = changesBetween(before, config);
  const refuses = shownRefusals(hour);
  return { version, changes: [...changes], changes_omitted: omitted, warnings, refuses };
}

/** Maximum number of kinds of calls in a preview, for each reason. */
const KINDS_SHOWN = 20;

function shownRefusals({ calls, refused, isPart }: LastHourEffect): ShownPreview['refuses'] {
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

function newlyReplaced(
  was: GroupConfig | undefined,
  group: GroupConfig,
  automatic: readonly string[],
  config: Config,
): string[] {
  const upstreams = resolveUpstreams(config, BUILT_IN_UPSTREAMS);
  const before = was === undefined ? [] : replacedBy(was, automatic, upstreams);
  return replacedBy(group, automatic, upstreams).filter((name) => !before.includes(name));
}

async function effectOf(
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
