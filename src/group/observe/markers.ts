import { MINUTE_MS, type HistoryGap } from '../../contract/history.ts';
import { POOL_MARKERS_MAX, type PoolMarker, type PoolMarkerKind } from '../../contract/history.ts';
import type { Member } from '../../core/member.ts';
import { slotsMaxNow } from '../../core/parts/ceiling.ts';
import type { GroupEvent } from '../../core/events.ts';
import { IMPLICIT, type InstantMs, type MemberId } from '../../core/words/ids.ts';
import type { GroupState } from '../../core/state.ts';
import type { Tables } from '../tables.ts';

/** The controls of a member as they were after the event before. */
interface Seen {
  readonly pausedUntil: number;
  readonly openedAt: number;
  readonly isClosed: boolean;
  readonly slots: number | null;
  readonly isOut: boolean;
}

/** Events by which operators change a member, which the audit log has. */
const BY_OPERATORS: ReadonlySet<GroupEvent['kind']> = new Set(['bring_back', 'relearn']);

/**
 * Marks what changed how a pool grants, besides what its operators do: a row per such event, never per
 * call. An upstream that refuses again and again makes one marker a minute of each kind.
 */
export class Markers {
  readonly #tables: Tables;
  readonly #seen = new Map<MemberId, Seen>();
  /** The latest of each kind and member, to which others of the same minute are added. */
  readonly #latest = new Map<string, { readonly sequence: number; marker: PoolMarker }>();
  /** Not written yet, by sequence. */
  readonly #unwritten = new Map<number, PoolMarker>();
  #sequence: number | null = null;
  /** A marker is new, and not only counted up. */
  #isDue = false;

  constructor(tables: Tables, state: GroupState) {
    this.#tables = tables;
    for (const member of state.serving) this.#seen.set(member.id, seenOf(member));
    tables.declare(
      'CREATE TABLE IF NOT EXISTS marker (sequence INTEGER PRIMARY KEY, at INTEGER NOT NULL, data TEXT NOT NULL)',
    );
  }

  /** Whether there is something to write now. */
  get isDue(): boolean {
    return this.#isDue;
  }

  /** Notes that an instance began though slots were held when the one before last wrote: a deploy, or a crash. */
  noteReset(slots: number, lost: HistoryGap | null, now: InstantMs): void {
    const span = lost === null ? {} : { since: lost.from, until: lost.to };
    this.#mark('reset', null, { slots, ...span }, now);
  }

  /** Lists the times between `fromMs` and `toMs` of which nothing is known, the oldest first. */
  gaps(fromMs: number, toMs: number): HistoryGap[] {
    return this.read(fromMs, Infinity).flatMap(({ kind, figures: { since, until } }) => {
      if (kind !== 'reset' || since === undefined || until === undefined) return [];
      const gap = { from: Math.max(since, fromMs), to: Math.min(until, toMs) };
      return gap.from < gap.to ? [gap] : [];
    });
  }

  /** Marks what an event changed, after it. */
  note(state: GroupState, event: GroupEvent, now: InstantMs): void {
    for (const member of state.serving) this.#noteMember(member, event, now);
  }

  #noteMember(member: Member, event: GroupEvent, now: InstantMs): void {
    const { id, settings, controls } = member;
    const { pause, breaker, ceiling, outage } = controls;
    const seen = this.#seen.get(id) ?? seenOf(member);
    const isClosed = breaker.phase === 'closed';
    const isOut = outage.reason !== null;
    if (
      pause.until === seen.pausedUntil &&
      breaker.openedAt === seen.openedAt &&
      isClosed === seen.isClosed &&
      ceiling.slots === seen.slots &&
      isOut === seen.isOut &&
      this.#seen.has(id)
    ) {
      return;
    }
    this.#seen.set(id, seenOf(member));
    const why = event.kind === 'report' ? event.signal.kind : null;
    if (isOut !== seen.isOut && !BY_OPERATORS.has(event.kind)) {
      this.#mark(isOut ? 'member_out' : 'member_back', isOut ? outage.reason : null, {}, now, id);
    }
    if (pause.until > seen.pausedUntil) {
      this.#mark('upstream_pause', why, { until: pause.until }, now, id);
    }
    if (breaker.openedAt > seen.openedAt) {
      this.#mark('breaker_opened', why, { until: breaker.openUntil }, now, id);
    }
    if (isClosed && !seen.isClosed) this.#mark('breaker_closed', null, {}, now, id);
    const from = slotsMaxNow({ ...ceiling, slots: seen.slots }, settings);
    const to = slotsMaxNow(ceiling, settings);
    if (to >= from) return;
    this.#mark('ceiling_cut', why, { ...(Number.isFinite(from) ? { from } : {}), to }, now, id);
  }

  /** Writes what is not written yet. */
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

  /** Lists the markers from `fromMs` up to `toMs`, the oldest first. */
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
  ): void {
    const key = `${kind} ${member}`;
    const latest = this.#latest.get(key);
    if (latest !== undefined && now - latest.marker.at < MINUTE_MS) {
      const { marker } = latest;
      const { from } = marker.figures;
      const merged = { ...figures, ...(from === undefined ? {} : { from }) };
      latest.marker = { ...marker, times: marker.times + 1, why, figures: merged };
      this.#unwritten.set(latest.sequence, latest.marker);
      return;
    }
    const of = member === IMPLICIT ? {} : { member };
    const marker = { at: now, kind, times: 1, why, ...of, figures };
    const sequence = (this.#sequence ?? this.#lastSequence()) + 1;
    this.#sequence = sequence;
    this.#latest.set(key, { sequence, marker });
    this.#unwritten.set(sequence, marker);
    this.#isDue = true;
  }

  #lastSequence(): number {
    const [row] = this.#tables.read<{ last: number | null }>(
      'SELECT max(sequence) AS last FROM marker',
    );
    return row?.last ?? 0;
  }
}

function seenOf({ controls: { pause, breaker, ceiling, outage } }: Member): Seen {
  return {
    pausedUntil: pause.until,
    openedAt: breaker.openedAt,
    isClosed: breaker.phase === 'closed',
    slots: ceiling.slots,
    isOut: outage.reason !== null,
  };
}
