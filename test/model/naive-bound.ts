/**
 * The bound of a naive group: everything that was granted, written and confirmed, in the order in which it
 * happened. Whatever is asked of it is summed up from that list again.
 */

/** A row of the bound, as far as both groups must agree on it. */
export interface NaiveRow extends NaiveParts {
  readonly mark: number;
  readonly held: number;
  readonly since: number;
  readonly next: number;
  readonly ended: readonly string[];
  readonly lapsed: readonly string[];
  readonly granted: readonly string[];
  readonly heirs: readonly string[];
  readonly waiters: number;
  /** Some lease was held by its id since nothing was held. */
  readonly mayOutlive?: true;
}

/** The parts of a row that only groups that name members have. */
interface NaiveParts {
  /** The marks and slots held at each member where those are not nothing. */
  readonly members?: Readonly<Record<string, { readonly mark: number; readonly held: number }>>;
  /** Where those run that it lists as granted. */
  readonly grantedAt?: Readonly<Record<string, string>>;
}

type NaiveBoundEntry =
  | {
      readonly kind: 'granted';
      readonly at: number;
      readonly member: string;
      readonly slots: number;
      /** They are those of a lease that ended. */
      readonly isPassed: boolean;
    }
  /** A lease ended by the only word of its holder; and its slot has gone to an heir. */
  | {
      readonly kind: 'vacated';
      readonly id: string;
      readonly member: string;
      readonly heirOf: readonly string[];
    }
  | { readonly kind: 'passed'; readonly id: string }
  | {
      readonly kind: 'issued';
      readonly at: number;
      readonly mark: number;
      readonly held: number;
      /** Leases whose answers leave behind it. */
      readonly awaited: readonly string[];
      /** All that it lists as granted, and as heirs. */
      readonly answering: readonly string[];
      readonly heirs: readonly string[];
      /** Waiters that it would list, and must not. */
      readonly unlisted: number;
      /** The same of each member; undefined: the row tells of none. */
      readonly members: NaiveParts['members'];
      /** It says that holders may live longer than the process. */
      readonly mayOutlive: boolean;
    }
  /** A lease is held by its id from here on. */
  | { readonly kind: 'by_id' }
  /** The group goes by other members: whatever was written tells of those that there were. */
  | { readonly kind: 'others' }
  | { readonly kind: 'confirmed' }
  /** Slots came free of whose holder nobody has heard: a newer instance may have it. */
  | { readonly kind: 'lost' }
  /** The slots that were held at the end of a turn. */
  | { readonly kind: 'held'; readonly at: number; readonly slots: number }
  /** It was asked for a row that says that nothing is held. */
  | { readonly kind: 'noted_empty' };

export type Issued = Extract<NaiveBoundEntry, { kind: 'issued' }>;

export class NaiveBound {
  readonly isStored: boolean;
  #entries: NaiveBoundEntry[] = [];

  constructor(isStored: boolean) {
    this.isStored = isStored;
  }

  add(entry: NaiveBoundEntry): void {
    this.#entries.push(entry);
  }

  /** Whether a grant that has just been added may be answered without a write. */
  isSettled(now: number): boolean {
    if (!this.isStored) return true;
    const confirmed = this.#confirmed();
    if (confirmed === undefined || now >= confirmed.at + 2_000) return false;
    const since = this.#since(confirmed);
    if (since.some(({ kind }) => kind === 'lost' || kind === 'others')) return false;
    const writes = [confirmed, ...this.#inFlight()];
    const least = Math.min(...writes.map(({ mark }) => mark));
    if (confirmed.held + this.#grantedSince(confirmed) > least) return false;
    if (confirmed.members === undefined) return true;
    const granted = since.filter((entry) => entry.kind === 'granted');
    const all = [...Object.keys(confirmed.members), ...granted.map(({ member }) => member)];
    return all.every((member) => {
      const leastHere = Math.min(...writes.map((each) => each.members?.[member]?.mark ?? 0));
      const held = confirmed.members?.[member]?.held ?? 0;
      return held + this.#grantedSince(confirmed, member) <= leastHere;
    });
  }

  /** Whether some lease was held by its id since nothing was held. */
  mayOutlive(): boolean {
    const emptied = this.#entries.findLastIndex(
      (entry) => entry.kind === 'issued' && entry.mark === 0,
    );
    return this.#entries.slice(emptied + 1).some(({ kind }) => kind === 'by_id');
  }

  /** Whether all that may be on disk tells of leases that are held by their ids. */
  isOutlivingReported(): boolean {
    const confirmed = this.#confirmed();
    const writes = [...(confirmed === undefined ? [] : [confirmed]), ...this.#inFlight()];
    return writes.every(({ mayOutlive }) => mayOutlive);
  }

  /**
   * Takes the slot of a lease of a member that has ended since, for an heir by all that may be on disk. Returns who had it
   * since the last row, the last one first; empty: there is none.
   */
  takeVacated(nextHolder: string, member: string, now: number): string[] {
    const confirmed = this.#confirmed();
    if (confirmed === undefined || now >= confirmed.at + 2_000) return [];
    const writes = [confirmed, ...this.#inFlight()];
    if (!writes.every((write) => this.#nextHoldersOf(write).includes(nextHolder))) return [];
    const [first, ...others] = writes.map((write) => this.#vacatedSince(write));
    const hadBy = (id: string): Extract<NaiveBoundEntry, { kind: 'vacated' }> | undefined =>
      this.#entries.filter((entry) => entry.kind === 'vacated').findLast((each) => each.id === id);
    const isHere = (id: string): boolean => hadBy(id)?.member === member;
    const id = first?.find((each) => isHere(each) && others.every((other) => other.includes(each)));
    if (id === undefined) return [];
    this.add({ kind: 'passed', id });
    const line = [id, ...(hadBy(id)?.heirOf ?? [])];
    const isNextHolder = (each: string): boolean =>
      writes.some((write) => this.#nextHoldersOf(write).includes(each));
    return line.filter((_, index) => line.slice(0, index).every(isNextHolder));
  }

  /** Leases whose slots have come free since a write, and went to nobody: no more than it lists heirs. */
  #vacatedSince(write: Issued): string[] {
    let vacated: string[] = [];
    for (const entry of this.#since(write)) {
      if (entry.kind === 'passed') vacated = vacated.filter((id) => id !== entry.id);
      if (entry.kind !== 'vacated' || write.answering.includes(entry.id)) continue;
      if (vacated.length < this.#nextHoldersOf(write).length) vacated.push(entry.id);
    }
    return vacated;
  }

  /** Nobody is an heir by what was written before the members were others. */
  #nextHoldersOf(write: Issued): readonly string[] {
    return this.#since(write).some(({ kind }) => kind === 'others') ? [] : write.heirs;
  }

  /** The last write, if it has arrived and says of no more slots than are held. */
  get exactWrite(): Issued | null {
    const confirmed = this.#confirmed();
    if (!this.isStored || confirmed === undefined || this.#inFlight().length > 0) return null;
    if (confirmed.mark > confirmed.held) return null;
    return { ...confirmed, heirs: this.#nextHoldersOf(confirmed) };
  }

  /** Whether two slots or more were granted in the second of the last grant and the one before it, which is not long ago. */
  isQuick(now: number): boolean {
    const grants = this.#entries.filter((entry) => entry.kind === 'granted');
    const last = Math.floor((grants.at(-1)?.at ?? -Infinity) / 1_000);
    const late = grants.filter(({ at }) => Math.floor(at / 1_000) >= last - 1);
    const slots = late.reduce((sum, each) => sum + each.slots, 0);
    return slots >= 2 && now < (last + 2) * 1_000;
  }

  /** Whether a write must be asked for, so that the next grants do not wait for one. */
  isRunningOut(now: number): boolean {
    const confirmed = this.#confirmed();
    if (!this.isStored || confirmed === undefined || this.#inFlight().length > 0) return false;
    const granted = this.#grantedSince(confirmed);
    if (confirmed.mark === confirmed.held) return false;
    if (granted >= 16 && now >= confirmed.at + 1_000) return true;
    const isNearlyUsed = (part: { mark: number; held: number }, used: number): boolean =>
      part.mark > part.held && used >= 0.75 * (part.mark - part.held);
    if (confirmed.members === undefined) return isNearlyUsed(confirmed, granted);
    return Object.entries(confirmed.members).some(([member, part]) =>
      isNearlyUsed(part, this.#grantedSince(confirmed, member)),
    );
  }

  /** How much higher than what is held a mark must be. */
  margin(held: number, limit: number, now: number): number {
    if (limit <= 8) return 0;
    const second = (at: number): number => Math.floor(at / 1_000);
    const grants = this.#entries.filter((entry) => entry.kind === 'granted');
    const last = second(grants.at(-1)?.at ?? -Infinity);
    const perSecond = [last, last - 1].map((each) =>
      grants.filter(({ at }) => second(at) === each).reduce((sum, { slots }) => sum + slots, 0),
    );
    const pace = second(now) > last + 1 ? 0 : Math.max(...perSecond);
    const wanted = Math.max(4, Math.floor(held / 8), pace);
    const free = Math.max(0, limit - held);
    return Math.min(wanted, Math.floor(free / 2) + Math.floor(limit / 8));
  }

  /** When it must be written that nothing is held; Infinity: never, or it was asked for. */
  emptyDueAt(): number {
    const runs = this.#emptyRuns();
    const current = runs.at(-1);
    const mark = this.#entries.findLast((entry) => entry.kind === 'issued')?.mark ?? 0;
    if (!this.isStored || mark === 0 || current === undefined) return Infinity;
    if (current.endedAt !== null || current.isNoted) return Infinity;
    return current.beganAt + (this.isSparse ? 50 : 3_000);
  }

  /** Whether nothing is held, and it was asked for a row that says so. */
  get isNotedEmpty(): boolean {
    const current = this.#emptyRuns().at(-1);
    return current?.endedAt === null && current.isNoted;
  }

  /** Whether the group was empty for long the last time, or is so for the first time. */
  get isSparse(): boolean {
    const before = this.#emptyRuns().findLast(({ endedAt }) => endedAt !== null);
    return before === undefined || (before.endedAt ?? 0) - before.beganAt >= 3_000;
  }

  /** Leases whose answers wait for a write that has not arrived. */
  awaitedInFlight(): string[] {
    return this.#inFlight().flatMap(({ awaited }) => awaited);
  }

  /** When a write that has not arrived is lost. */
  lostAt(): number {
    return (this.#inFlight()[0]?.at ?? Infinity) + 5_000;
  }

  /** The times in which nothing was held, from the first on. */
  #emptyRuns(): { readonly beganAt: number; endedAt: number | null; isNoted: boolean }[] {
    const runs = [{ beganAt: 0, endedAt: null as number | null, isNoted: false }];
    for (const entry of this.#entries) {
      const last = runs.at(-1);
      if (last === undefined) continue;
      if (entry.kind === 'noted_empty') last.isNoted = true;
      if (entry.kind !== 'held') continue;
      if (entry.slots > 0) last.endedAt ??= entry.at;
      else if (last.endedAt !== null) {
        runs.push({ beganAt: entry.at, endedAt: null, isNoted: false });
      }
    }
    return runs;
  }

  /** The last write that has arrived: confirmations come in the order of the writes. */
  #confirmed(): Issued | undefined {
    const count = this.#entries.filter(({ kind }) => kind === 'confirmed').length;
    return this.#entries.filter((entry) => entry.kind === 'issued')[count - 1];
  }

  #inFlight(): Issued[] {
    const count = this.#entries.filter(({ kind }) => kind === 'confirmed').length;
    return this.#entries.filter((entry) => entry.kind === 'issued').slice(count);
  }

  #since(issued: Issued): NaiveBoundEntry[] {
    return this.#entries.slice(this.#entries.indexOf(issued) + 1);
  }

  #grantedSince(issued: Issued, at?: string): number {
    const granted = this.#since(issued).filter(
      (entry) =>
        entry.kind === 'granted' && !entry.isPassed && (at === undefined || entry.member === at),
    ) as Extract<NaiveBoundEntry, { kind: 'granted' }>[];
    return granted.reduce((sum, { slots }) => sum + slots, 0);
  }
}
