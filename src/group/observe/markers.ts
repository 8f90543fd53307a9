import {
  MINUTE_MS,
  POOL_MARKERS_MAX,
  type HistoryGap,
  type PoolMarker,
  type PoolMarkerKind,
} from '../../contract/history.ts';
import type { Limiter, Member } from '../../core/member.ts';
import { aboutCalls } from '../../core/scopes.ts';
import { ALL_CALLS, isSameScope, scopeKey, type Scope } from '../../core/words/signal.ts';
import { slotsMaxNow } from '../../core/parts/ceiling.ts';
import type { GroupEvent } from '../../core/events.ts';
import { IMPLICIT, type InstantMs, type MemberId } from '../../core/words/ids.ts';
import type { GroupState } from '../../core/state.ts';
import type { Tables } from '../store.ts';
import { shownScope } from './scope-status.ts';

/** The controls of a member after the previous event. */
interface SeenControls {
  readonly pausedUntil: number;
  readonly openedAt: number;
  readonly isClosed: boolean;
  readonly slots: number | null;
}

/** Earlier controls of a member, and the calls to which they applied. */
interface SeenMember extends SeenControls {
  readonly isEjected: boolean;
  readonly about: Scope;
  readonly scopes: Map<string, SeenControls>;
}

/** Events of operators' changes, which the audit log contains. */
const BY_OPERATORS: ReadonlySet<GroupEvent['kind']> = new Set(['bring_back', 'relearn']);

/** Maximum number of remembered markers. Old ones are removed, because scopes come and go. */
const LATEST_MAX = 256;

/**
 * Records changes of how a pool grants, except operators' changes: one row per change, never per call. An upstream that
 * keeps refusing causes one marker per minute and kind.
 */
export class Markers {
  readonly #tables: Tables;
  readonly #seen = new Map<MemberId, SeenMember>();
  /** The latest marker of each kind and member. Changes in the same minute are added to it. */
  readonly #latest = new Map<string, { readonly sequence: number; marker: PoolMarker }>();
  /** Markers that are not written yet, by sequence. */
  readonly #unwritten = new Map<number, PoolMarker>();
  #sequence: number | null = null;
  /** Whether a marker is new, rather than only counted up. */
  #isDue = false;

  constructor(tables: Tables, state: GroupState) {
    this.#tables = tables;
    for (const member of state.serving) this.#seen.set(member.id, seenOfMember(member));
    tables.declare(
      'CREATE TABLE IF NOT EXISTS marker (sequence INTEGER PRIMARY KEY, at INTEGER NOT NULL, data TEXT NOT NULL)',
    );
  }

  get isDue(): boolean {
    return this.#isDue;
  }

  /**
   * Records that an instance started although slots were held when the previous one last wrote: a deploy or a crash.
   */
  noteReset(slots: number, lost: HistoryGap | null, now: InstantMs): void {
    const span = lost === null ? {} : { since: lost.from, until: lost.to };
    this.#mark('reset', null, { slots, ...span }, now);
  }

  /** Lists the times between `fromMs` and `toMs` without records, oldest first. */
  gaps(fromMs: number, toMs: number): HistoryGap[] {
    return this.read(fromMs, Infinity).flatMap(({ kind, figures: { since, until } }) => {
      if (kind !== 'reset' || since === undefined || until === undefined) return [];
      const gap = { from: Math.max(since, fromMs), to: Math.min(until, toMs) };
      return gap.from < gap.to ? [gap] : [];
    });
  }

  /** Records the changes of an event, after it. */
  note(state: GroupState, event: GroupEvent, now: InstantMs): void {
    for (const member of state.serving) this.#noteMember(member, event, now);
  }

  #noteMember(member: Member, event: GroupEvent, now: InstantMs): void {
    const { id, controls } = member;
    const { outage, scopes } = controls;
    const isEjected = outage.reason !== null;
    const seen = this.#seen.get(id) ?? seenOfMember(member);
    const why = event.kind === 'report' ? event.signal.kind : null;
    this.#noteScopes(member, seen, why, now);
    const isSame =
      this.#seen.has(id) && isEjected === seen.isEjected && isSameScope(seen.about, scopes.about);
    if (isSame && isAlike(seen, seenOf(member))) return;
    this.#seen.set(id, { ...seenOfMember(member), scopes: seen.scopes });
    if (isEjected !== seen.isEjected && !BY_OPERATORS.has(event.kind)) {
      this.#mark(
        isEjected ? 'member_out' : 'member_back',
        isEjected ? outage.reason : null,
        {},
        now,
        id,
      );
    }
    // The lessons about some calls were moved to their scope. Nothing changed for other calls.
    if (isSameScope(scopes.about, ALL_CALLS) && seen.about !== ALL_CALLS) return;
    this.#noteLessons(member, seen, why, now, { member: id, ...aboutCalls(member) });
  }

  #noteScopes(member: Member, seen: SeenMember, why: string | null, now: InstantMs): void {
    const { scopes: known } = seen;
    for (const [key, limiter] of member.scopes) {
      const isMoved = !known.has(key) && key === scopeKey(seen.about);
      const before = isMoved ? seenOf(limiter) : (known.get(key) ?? NOTHING_SEEN);
      known.set(key, seenOf(limiter));
      const { scope } = limiter;
      this.#noteLessons(limiter, before, why, now, { member: member.id, scope });
    }
    if (known.size === member.scopes.size) return;
    for (const key of known.keys()) if (!member.scopes.has(key)) known.delete(key);
  }

  #noteLessons(
    { settings, controls }: Pick<Limiter, 'settings' | 'controls'>,
    seen: SeenControls,
    why: string | null,
    now: InstantMs,
    { member, scope }: { readonly member: MemberId; readonly scope?: Scope },
  ): void {
    const { pause, breaker, ceiling } = controls;
    const mark = (
      kind: PoolMarkerKind,
      reason: string | null,
      figures: Readonly<Record<string, number>>,
    ): void => this.#mark(kind, reason, figures, now, member, scope);
    if (pause.until > seen.pausedUntil) mark('upstream_pause', why, { until: pause.until });
    if (breaker.openedAt > seen.openedAt) {
      mark('breaker_opened', why, { until: breaker.openUntil });
    }
    if (breaker.phase === 'closed' && !seen.isClosed) mark('breaker_closed', null, {});
    if (ceiling.slots === seen.slots) return;
    const from = slotsMaxNow({ ...ceiling, slots: seen.slots }, settings);
    const to = slotsMaxNow(ceiling, settings);
    if (to >= from) return;
    mark('ceiling_cut', why, { ...(Number.isFinite(from) ? { from } : {}), to });
  }

  write(): void {
    if (this.#unwritten.size === 0) return;
    for (const [sequence, marker] of this.#unwritten) {
      this.#tables.write(
        `INSERT OR REPLACE INTO marker (sequence, at, data) VALUES (?, ?, ?)`,
        sequence,
        marker.at,
        JSON.stringify(marker),
      );
    }
    this.#unwritten.clear();
    if (!this.#isDue) return;
    this.#isDue = false;
    const last = this.#sequence ?? 0;
    this.#tables.write('DELETE FROM marker WHERE sequence <= ?', last - POOL_MARKERS_MAX);
  }

  /** Lists the markers from `fromMs` up to `toMs`, oldest first. */
  read(fromMs: number, toMs: number): PoolMarker[] {
    const written = this.#tables
      .read<{ sequence: number; data: string }>(
        'SELECT sequence, data FROM marker WHERE at >= ? AND at < ? ORDER BY sequence',
        fromMs,
        toMs,
      )
      .map(({ sequence, data }) => [sequence, JSON.parse(data) as PoolMarker] as const);
    const markers = new Map([...written, ...this.#unwritten]);
    return [...markers.values()].filter(({ at }) => at >= fromMs && at < toMs);
  }

  #mark(
    kind: PoolMarkerKind,
    why: string | null,
    figures: Readonly<Record<string, number>>,
    now: InstantMs,
    member: MemberId = IMPLICIT,
    scope?: Scope,
  ): void {
    const key = `${kind} ${member} ${scope === undefined ? '' : scopeKey(scope)}`;
    this.#forgetOld(now);
    const latest = this.#latest.get(key);
    if (latest !== undefined && now - latest.marker.at < MINUTE_MS) {
      const { marker } = latest;
      const { from } = marker.figures;
      const merged = { ...figures, ...(from === undefined ? {} : { from }) };
      latest.marker = { ...marker, times: marker.times + 1, why, figures: merged };
      this.#unwritten.set(latest.sequence, latest.marker);
      return;
    }
    const of = {
      ...(member === IMPLICIT ? {} : { member }),
      ...(scope !== undefined && { scope: shownScope(scope) }),
    };
    const marker = { at: now, kind, times: 1, why, ...of, figures };
    const sequence = (this.#sequence ?? this.#lastSequence()) + 1;
    this.#sequence = sequence;
    this.#latest.set(key, { sequence, marker });
    this.#unwritten.set(sequence, marker);
    this.#isDue = true;
  }

  /** Removes markers that no longer change. */
  #forgetOld(now: InstantMs): void {
    if (this.#latest.size < LATEST_MAX) return;
    for (const [key, { marker }] of this.#latest) {
      if (now - marker.at >= MINUTE_MS) this.#latest.delete(key);
    }
  }

  #lastSequence(): number {
    const [row] = this.#tables.read<{ last: number | null }>(
      'SELECT max(sequence) AS last FROM marker',
    );
    return row?.last ?? 0;
  }
}

const NOTHING_SEEN: SeenControls = { pausedUntil: 0, openedAt: 0, isClosed: true, slots: null };

function seenOf({
  controls: { pause, breaker, ceiling },
}: Pick<Limiter, 'controls'>): SeenControls {
  return {
    pausedUntil: pause.until,
    openedAt: breaker.openedAt,
    isClosed: breaker.phase === 'closed',
    slots: ceiling.slots,
  };
}

function seenOfMember(member: Member): SeenMember {
  const { outage, scopes } = member.controls;
  const ofScopes = [...member.scopes].map(([key, limiter]) => [key, seenOf(limiter)] as const);
  return {
    ...seenOf(member),
    isEjected: outage.reason !== null,
    about: isSameScope(scopes.about, ALL_CALLS) ? ALL_CALLS : scopes.about,
    scopes: new Map(ofScopes),
  };
}

function isAlike(a: SeenControls, b: SeenControls): boolean {
  return (
    a.pausedUntil === b.pausedUntil &&
    a.openedAt === b.openedAt &&
    a.isClosed === b.isClosed &&
    a.slots === b.slots
  );
}
