import * as z from 'zod';
import { instant, partitionName } from './shapes.ts';
import { scopeWords } from '../routing/scopes-shown.ts';
import { KEY_PREFIX, TEAM_PREFIX } from '../routing/implied-groups.ts';
import type { PoolReply } from '../overview/pools.ts';
import { callScopeSchema } from '../contract/shared-shapes.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import type { PoolHistory, PoolMarker, AuditChange, AuditEntry } from '../contract/history.ts';
import type { AutoGroupConfig } from '../contract/config/config.ts';

export const gapSchema = z.object({
  from: instant.describe('Start of the gap.'),
  to: instant.describe('End of the gap.'),
  why: z
    .enum(['before', 'absent', 'lost', 'unreachable'])
    .describe(
      '`before`: the group did not exist yet. A group that calls create exists from its first call. `absent`: there was no such group. `lost`: a pool was restarted with calls in flight. `unreachable`: no pool responded.',
    ),
  partition: partitionName.describe('Partition. null if the group is not split.'),
});

/** A change that explains why the curves bend at a certain time. */
export const markerSchema = z
  .object({
    at: instant.describe('Time of the change.'),
    kind: z
      .enum([
        'paused',
        'resumed',
        'draining',
        'limit_changed',
        'edited',
        'created',
        'removed',
        'breaker_opened',
        'breaker_closed',
        'ceiling_cut',
        'member_out',
        'member_back',
        'reset',
      ])
      .describe('Kind of the change.'),
    label: z.string().describe('Short label, such as `max_concurrency 5 → 3`.'),
    detail: z.string().describe('Description for people.'),
    actor: z
      .string()
      .nullable()
      .describe('Actor, as in the audit log. null if the upstream or the platform caused it.'),
    member: z
      .string()
      .exactOptional()
      .describe('Affected member. Absent if the whole group was affected.'),
    scope: callScopeSchema
      .exactOptional()
      .describe('Affected calls. Absent if it affected all calls of the group or member.'),
    partition: partitionName.describe(
      'Affected partition. null if the group is not split, or the whole group was affected.',
    ),
  })
  .describe('A change of a group at one point in time.');

export type Marker = z.output<typeof markerSchema>;

/** Returns the paths of a group in the audit log. An automatic group may have an entry, or may have had one. */
export function auditPathsOf(group: string): string[] {
  if (group.startsWith(KEY_PREFIX)) return [`keys[${group.slice(KEY_PREFIX.length)}]`];
  if (group.startsWith(TEAM_PREFIX)) return [`teams[${group.slice(TEAM_PREFIX.length)}]`];
  const own = `groups[${group}]`;
  return group.startsWith(AUTO_PREFIX) ? [own, `auto_groups[${group}]`] : [own];
}

/** Creates the markers of an operator's action on a group. One entry may create several markers. */
export function auditMarkers(entry: AuditEntry, path: string): Marker[] {
  const { at, actor } = entry;
  const isAutomatic = path.startsWith('auto_groups[');
  const changes = isAutomatic ? entry.changes.flatMap(switchChanges) : entry.changes;
  const below = changes.map((change) => ({
    ...change,
    field: change.path.slice(path.length + 1),
  }));
  const mark = (kind: Marker['kind'], label: string, detail: string): Marker => ({
    at,
    kind,
    label,
    detail,
    actor,
    partition: null,
  });
  const limits = below.filter(({ field }) => field.startsWith('limits.'));
  const rest = below.filter((change) => !limits.includes(change));
  return [
    ...rest.flatMap((change) => {
      const [kind, label] = verbOf(change);
      return kind === 'edited' ? [] : [mark(kind, label, `${label} by ${actor}`)];
    }),
    ...(limits.length === 0
      ? []
      : [
          mark('limit_changed', labelOf(limits), `${limits.map(reported).join('; ')}, by ${actor}`),
        ]),
    ...editMarker(rest, (label, detail) => mark('edited', label, `${detail}, by ${actor}`)),
  ];
}

/** Returns the changed switches of an automatic group. Its entry exists only while a switch is set. */
function switchChanges(change: AuditChange): AuditChange[] {
  if (!change.path.endsWith(']')) return [change];
  const [was, is] = [Object(change.from), Object(change.to)] as Partial<AutoGroupConfig>[];
  return (['paused', 'draining', 'on_saturated'] as const).flatMap((field) => {
    const byDefault = field === 'on_saturated' ? 'queue' : false;
    const [from, to] = [was?.[field] ?? byDefault, is?.[field] ?? byDefault];
    return JSON.stringify(from) === JSON.stringify(to)
      ? []
      : [{ path: `${change.path}.${field}`, from, to }];
  });
}

type Below = AuditChange & { readonly field: string };

/** Creates one marker for all changes that are neither limits nor switches. */
function editMarker(
  changes: readonly Below[],
  mark: (label: string, detail: string) => Marker,
): Marker[] {
  const edited = changes.filter((change) => verbOf(change)[0] === 'edited');
  return edited.length === 0 ? [] : [mark('Edited', edited.map(({ field }) => field).join(', '))];
}

function verbOf({ field, from, to }: Below): [kind: Marker['kind'], label: string] {
  if (field === '') {
    return from === undefined ? ['created', 'Created'] : ['removed', 'Removed'];
  }
  if (field === 'paused') return to === true ? ['paused', 'Paused'] : ['resumed', 'Resumed'];
  if (field === 'draining') {
    return to === true ? ['draining', 'Draining'] : ['resumed', 'Accepts calls again'];
  }
  return ['edited', 'Edited'];
}

function labelOf(limits: readonly Below[]): string {
  const [first] = limits;
  return limits.length === 1 && first !== undefined ? reported(first) : `${limits.length} limits`;
}

function reported({ field, from, to }: Below): string {
  return `${field.slice('limits.'.length)} ${shown(from)} → ${shown(to)}`;
}

/** Formats a limit. null means that there is none. */
function shown(limit: unknown): string {
  return limit === null || limit === undefined ? 'none' : JSON.stringify(limit);
}

export function poolMarker(
  { at, kind, times, why, figures, member, scope }: PoolMarker,
  partition: string | null,
): Marker {
  const [own, label, detail] = words(kind, why, figures);
  const often = times > 1 ? `; ${times} times within a minute` : '';
  const about = scope === undefined ? '' : `; only calls with ${scopeWords(scope)}`;
  const marker = {
    at: new Date(at).toISOString(),
    kind: own,
    actor: null,
    partition,
    ...(scope && { scope }),
  };
  const place = scope === undefined ? '' : `${scopeWords(scope)}: `;
  if (member === undefined) {
    return { ...marker, label: place + label, detail: detail + about + often };
  }
  return {
    ...marker,
    member,
    label: `${member}: ${place}${label}`,
    detail: `Member ${member}: ${detail}${about}${often}`,
  };
}

function words(
  kind: PoolMarker['kind'],
  why: string | null,
  { until, from, to, slots }: PoolMarker['figures'],
): [kind: Marker['kind'], label: string, detail: string] {
  const till = until === undefined ? '' : ` until ${new Date(until).toISOString()}`;
  const because = why === null ? '' : ` after a refusal for ${why}`;
  switch (kind) {
    case 'upstream_pause':
      return why === 'served'
        ? [
            'paused',
            'Paused: limit nearly used up',
            `The upstream's headers report that little is left${till}`,
          ]
        : ['paused', 'Paused by the upstream', `Paused${till}${because}`];
    case 'breaker_opened':
      return ['breaker_opened', 'Breaker opened', `The upstream failed too often. No calls${till}`];
    case 'breaker_closed':
      return ['breaker_closed', 'Breaker closed', 'The upstream accepts calls again'];
    case 'ceiling_cut': {
      const was = from === undefined ? 'unlimited' : String(from);
      return ['ceiling_cut', `Learned ceiling ${was} → ${to}`, `Cut${because}`];
    }
    case 'member_out':
      return ['member_out', 'Member ejected', `It gets no calls${because}`];
    case 'member_back':
      return ['member_back', 'Member restored', 'Its upstream serves it again'];
    case 'reset':
      return ['reset', 'Object restarted', `Slots in use at its last write: ${slots}`];
  }
}

/** Time without data. In all other times, a missing point means that there was no activity. */
type DataGap = z.output<typeof gapSchema>;

/** Epoch milliseconds. */
interface TimeSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

/** How a group is created: by the configuration, or by its first call. */
export interface PoolLifetime {
  /** Its first call creates it, which is not in the audit log. */
  readonly isByCalls: boolean;
  readonly isConfigured: boolean;
}

/** Maximum number of gaps in a response. The latest ones are kept. */
const GAPS_MAX = 1_000;

type PoolHistories = readonly PoolReply<PoolHistory>[];

/** Returns the gaps of a range, the oldest first, and the start of the data (null if there is none). */
export function gapsIn(
  range: TimeSpan,
  asked: PoolHistories,
  markers: readonly Marker[],
  existence: PoolLifetime,
): { readonly since: string | null; readonly gaps: DataGap[] } {
  const answers = asked.flatMap((one) => ('answer' in one ? [one.answer] : []));
  if (answers.length === 0 && asked.length > 0) {
    return { since: null, gaps: [gapOf(range, 'unreachable')] };
  }
  const absent = absences(range, answers, markers, existence);
  const [first] = absent;
  const isLate = first !== undefined && first.fromMs <= range.fromMs;
  const sinceMs = isLate ? first.toMs : range.fromMs;
  const missing = absent.map((span) => {
    const isBefore = isLate && span === first && sinceMs < range.toMs;
    return gapOf(span, isBefore ? 'before' : 'absent');
  });
  const gaps = [...missing, ...lostIn(asked)];
  return {
    since: sinceMs < range.toMs ? new Date(sinceMs).toISOString() : null,
    gaps: gaps.toSorted((a, b) => Date.parse(a.from) - Date.parse(b.from)).slice(-GAPS_MAX),
  };
}

/** Returns the times in which the group did not exist. Recorded data takes precedence over the audit log. */
function absences(
  range: TimeSpan,
  answers: readonly PoolHistory[],
  markers: readonly Marker[],
  { isByCalls, isConfigured }: PoolLifetime,
): TimeSpan[] {
  const firstMs = firstDataMs(range, answers);
  const absent = isByCalls
    ? [{ ...range, toMs: firstMs ?? range.toMs }]
    : withoutEntry(range, markers, isConfigured);
  const recorded = answers.flatMap(({ points }) => points.map(({ at }) => at));
  return absent.flatMap((span) => {
    const inside = recorded.filter((at) => at >= span.fromMs && at < span.toMs);
    // A point stands for a whole step, and the first data may begin within its step.
    const isFirst = firstMs !== null && firstMs >= span.fromMs && firstMs <= span.toMs;
    const toMs = Math.min(span.toMs, ...inside, ...(isFirst ? [firstMs] : []));
    return toMs > span.fromMs ? [{ fromMs: span.fromMs, toMs }] : [];
  });
}

/** Returns the start of the data of all pools, or null if none of them reports any. */
function firstDataMs({ fromMs }: TimeSpan, answers: readonly PoolHistory[]): number | null {
  const all = answers.flatMap(({ since, points }) =>
    since === null ? points.slice(0, 1).map(({ at }) => at) : [since],
  );
  return all.length === 0 ? null : Math.max(fromMs, Math.min(...all));
}

/** Returns the times in which the configuration did not contain the group, according to the audit log. */
function withoutEntry(
  { fromMs, toMs }: TimeSpan,
  markers: readonly Marker[],
  isConfigured: boolean,
): TimeSpan[] {
  const changes = markers
    .filter(({ kind }) => kind === 'created' || kind === 'removed')
    .map(({ kind, at }) => ({ isThere: kind === 'created', atMs: Date.parse(at) }))
    .toSorted((a, b) => a.atMs - b.atMs);
  const spans: TimeSpan[] = [];
  let isThere = changes[0] === undefined ? isConfigured : !changes[0].isThere;
  let sinceMs = fromMs;
  for (const change of changes) {
    if (!isThere && change.isThere) spans.push({ fromMs: sinceMs, toMs: change.atMs });
    ({ isThere } = change);
    sinceMs = change.atMs;
  }
  if (!isThere) spans.push({ fromMs: sinceMs, toMs });
  return spans;
}

/** Returns the times whose data was lost in restarts of pools. */
function lostIn(asked: PoolHistories): DataGap[] {
  return asked.flatMap((one) => {
    if ('error' in one) return [];
    const { partition } = one.pool;
    return one.answer.gaps.map(({ from, to }) => ({
      ...gapOf({ fromMs: from, toMs: to }, 'lost'),
      partition,
    }));
  });
}

function gapOf({ fromMs, toMs }: TimeSpan, why: DataGap['why']): DataGap {
  return {
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    why,
    partition: null,
  };
}
