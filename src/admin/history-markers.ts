import type * as z from 'zod';
import type { markerSchema } from '../contract/admin/observation-schemas.ts';
import type { AutoGroupConfig } from '../contract/config/config.ts';
import type { AuditChange, AuditEntry } from '../contract/audit.ts';
import type { PoolMarker } from '../contract/history.ts';
import { KEY_PREFIX, TEAM_PREFIX } from '../routing/key-groups.ts';
import { scopeWords } from '../routing/scopes-shown.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';

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
  const instant = new Date(at).toISOString();
  const about = scope === undefined ? '' : `; only calls with ${scopeWords(scope)}`;
  const marker = { at: instant, kind: own, actor: null, partition, ...(scope && { scope }) };
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
