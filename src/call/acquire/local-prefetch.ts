import type { GiveBackRequest, PrefetchReport } from '../../contract/rpc/group-rpc.ts';
import { addSums, type ReportedCost } from '../../core/parts/costs.ts';
import type { PrefetchedShare, ReportedCalls } from '../../core/parts/prefetches.ts';
import type { LeaseId } from '../../core/words/ids.ts';
import type { Settlement } from '../../core/words/ticket.ts';
import { PREFETCH_STARTS_MS, PREFETCH_TTL_MS } from '../../core/words/settings.ts';
import { steadyClock, type SteadyClock } from '../../runtime/async.ts';

/** How long no call must start before unused slots are released. */
const IDLE_MS = 250;

/** How long a keeper may be silent before it counts as lost. It checks four times as often. */
const KEEPER_LOST_MS = 1_000;

/**
 * How long one request keeps a prefetch before the next call takes over. Work after an answer may run for half a
 * minute.
 */
const KEEPER_MAX_MS = 20_000;

/** When a call on a slot counts as dead with its context. A live call acquires its own lease long before. */
const CALL_LOST_MS = PREFETCH_TTL_MS;

/** Maximum calls of a kind that one report lists individually. These are the last ones. */
const LAST_MAX = 200;

/** Maximum pairs of team and model that one report lists separately. */
const COST_LINES_MAX = 50;

export interface LocalSlot {
  readonly slot: LeaseId;
  readonly attachment: number;
}

export type PrefetchedCall = Pick<ReportedCalls, 'holder' | 'lane'> & { readonly leaseId: LeaseId };

interface PrefetchedCallSum {
  readonly of: Pick<ReportedCalls, 'holder' | 'lane' | 'status'>;
  calls: number;
  heldMs: number;
  readonly last: (readonly [
    leaseId: LeaseId,
    beganAt: number,
    endedAt: number,
    requestId: string | undefined,
  ])[];
  /** null if the costs of the group include none of them. */
  costs: ReportedCost[] | null;
}

/**
 * The slots that one instance of a pool has prefetched to this isolate. It holds plain data only, because several
 * requests work on it and none may wait for another.
 */
export class LocalPrefetch {
  readonly id: LeaseId;
  /** The version of the configuration whose calls may start on it. */
  configVersion: number;
  readonly #clock: Pick<SteadyClock, 'now'>;
  readonly #free: LocalSlot[] = [];
  /** Slots on which calls run: how many there were when each call began, and when that was. */
  readonly #used = new Map<LocalSlot, { readonly atOnce: number; readonly since: number }>();
  /** When the last message was sent that the pool acknowledged as a renewal. */
  #renewedAt: number;
  #usedAt: number;
  /** Those whose calls have requested their own leases. */
  readonly #owned = new Set<LocalSlot>();
  /** Maximum slots in use at the start of a call that ended successfully since the last report. */
  #peak = 0;
  /** Maximum slots in use since spare ones were last computed. */
  #needed = 0;
  /** The attachment of the slots that were prefetched last. */
  #newest = 0;
  #hasEnded = false;
  #isGone = false;
  #ended = new Map<string, PrefetchedCallSum>();
  /** Counts keepers. Only the newest continues. */
  #keeper = 0;
  #keeperBeganAt = -Infinity;
  #keeperSeenAt = -Infinity;

  constructor(
    id: LeaseId,
    configVersion: number,
    renewedAt: number,
    clock: Pick<SteadyClock, 'now'> = steadyClock,
  ) {
    this.#clock = clock;
    this.#usedAt = clock.now();
    this.id = id;
    this.configVersion = configVersion;
    this.#renewedAt = renewedAt;
  }

  /** No call starts on it any more. The pool has recalled it, or does not know it. */
  get isOver(): boolean {
    return this.#hasEnded;
  }

  /** Its pool does not know it, or has given its slots up. Calls on it run without a counted slot. */
  get isGone(): boolean {
    return this.#isGone;
  }

  get isEmpty(): boolean {
    return this.#free.length + this.#used.size === 0;
  }

  get renewedAt(): number {
    return this.#renewedAt;
  }

  /** Whether the pool may have given its slots up. */
  get hasLapsed(): boolean {
    return this.#clock.now() >= this.#renewedAt + PREFETCH_TTL_MS;
  }

  /**
   * Returns whether slots arrived too late to be used, because their prefetch was recalled or precedes this one. With a
   * second count of the same prefetch, its pool would assume that it is not kept once one of them ends.
   */
  comesAfter({ loan: prefetch, attachment }: PrefetchedShare): boolean {
    return prefetch === this.id ? this.#hasEnded : attachment < this.#newest;
  }

  add({ slots, attachment }: PrefetchedShare): void {
    this.#usedAt = this.#clock.now();
    this.#newest = Math.max(this.#newest, attachment);
    for (const slot of slots) this.#free.push({ slot, attachment });
  }

  /** Takes a slot for a call that starts now. null if the call has to ask the pool. */
  take(): LocalSlot | null {
    const now = this.#clock.now();
    if (this.#hasEnded || now >= this.#renewedAt + PREFETCH_STARTS_MS) return null;
    const slot = this.#free.pop();
    if (slot === undefined) return null;
    this.#used.set(slot, { atOnce: this.#used.size + 1, since: now });
    this.#usedAt = now;
    this.#needed = Math.max(this.#needed, this.#used.size);
    return slot;
  }

  /** Returns the slot of a call that has ended. True if it has to be released to the pool. */
  takeBack(slot: LocalSlot): boolean {
    this.#used.delete(slot);
    if (!this.#hasEnded) this.#free.push(slot);
    return this.#hasEnded;
  }

  /** Notes that a call requests its own lease instead of its slot. */
  own(slot: LocalSlot): void {
    if (this.#used.has(slot)) this.#owned.add(slot);
  }

  /** Removes a slot that its pool now knows as the lease of a call, or as ended. */
  part(slot: LocalSlot): void {
    this.#used.delete(slot);
    this.#owned.delete(slot);
  }

  /** Notes a call that ended successfully, for the next report. */
  note(
    call: PrefetchedCall,
    slot: LocalSlot,
    status: number | null,
    beganAt: number,
    requestId?: string,
    used?: Settlement,
  ): void {
    this.#peak = Math.max(this.#peak, this.#used.get(slot)?.atOnce ?? 0);
    const now = this.#clock.now();
    const { holder, lane, leaseId } = call;
    const key = JSON.stringify([holder, lane, status]);
    let sum = this.#ended.get(key);
    if (sum === undefined) {
      sum = { of: { holder, lane, status }, calls: 0, heldMs: 0, last: [], costs: null };
      this.#ended.set(key, sum);
    }
    sum.calls += 1;
    sum.heldMs += now - beganAt;
    sum.last.push([leaseId, beganAt, now, requestId]);
    if (used !== undefined) addCost((sum.costs ??= []), holder.model, used);
    // Not on every call, because each splice moves all entries.
    if (sum.last.length >= 2 * LAST_MAX) sum.last.splice(0, LAST_MAX);
  }

  /** Returns what happened since the last report. A lost report is not repeated. */
  report(): PrefetchReport {
    const now = this.#clock.now();
    this.#dropLost(now);
    const ended = [...this.#ended.values()].map(({ of, calls, heldMs, last, costs }) => ({
      ...of,
      calls,
      heldMs,
      ...(costs !== null && { costs }),
      last: last.slice(-LAST_MAX).map(([id, beganAt, endedAt, requestId]) => {
        const call = [id, now - beganAt, now - endedAt] as const;
        return requestId === undefined ? call : ([...call, requestId] as const);
      }),
    }));
    const used = this.#used.size - this.#owned.size;
    const known = this.#free.length + used;
    const report = { loan: this.id, known, used, peak: this.#peak, ended };
    this.#ended = new Map();
    this.#peak = 0;
    return report;
  }

  /** Drops slots of calls that died. Their pool misses these slots and expires them. */
  #dropLost(now: number): void {
    for (const [slot, { since }] of this.#used) {
      if (now - since >= CALL_LOST_MS && !this.#owned.has(slot)) this.#used.delete(slot);
    }
  }

  noteRenewed(sentAt: number): void {
    this.#renewedAt = sentAt;
  }

  /** Stops new calls on it. With `isGone` it need not be kept either. */
  end(isGone: boolean): void {
    this.#hasEnded = true;
    this.#isGone ||= isGone;
  }

  takeFree(): LocalSlot[] {
    return this.#free.splice(0);
  }

  /** Removes the slots that were not used since the last time. */
  takeSpare(): LocalSlot[] {
    const kept = this.#needed - this.#used.size;
    this.#needed = this.#used.size;
    return this.#free.splice(0, Math.max(0, this.#free.length - kept));
  }

  get isIdle(): boolean {
    return this.#clock.now() - this.#usedAt >= IDLE_MS;
  }

  backOf(slots: readonly LocalSlot[], report: PrefetchReport): GiveBackRequest {
    return { ...report, slots, hasLapsed: this.hasLapsed };
  }

  get needsKeeper(): boolean {
    if (this.#hasEnded || this.isEmpty) return false;
    const now = this.#clock.now();
    const isLost = now - this.#keeperSeenAt >= KEEPER_LOST_MS;
    return isLost || now - this.#keeperBeganAt >= KEEPER_MAX_MS;
  }

  /** Starts to keep it. Returns the number of the keeper. */
  beginKeeping(): number {
    this.#keeperBeganAt = this.#clock.now();
    this.#keeperSeenAt = this.#keeperBeganAt;
    return (this.#keeper += 1);
  }

  /** Returns whether a keeper is still the newest, and notes that it is alive. */
  isKeptBy(keeper: number): boolean {
    if (this.#keeper !== keeper) return false;
    this.#keeperSeenAt = this.#clock.now();
    return true;
  }

  /** Ends the keeping. The next call that starts or ends continues it. */
  endKeeping(keeper: number): void {
    if (this.#keeper === keeper) this.#keeperSeenAt = -Infinity;
  }
}

/** Adds the reported usage of a call to that of its team and model. `model` is the one that the call named. */
function addCost(costs: ReportedCost[], model: string | null, used: Settlement): void {
  const { bill, usd, inputTokens, outputTokens, cachedTokens = 0, isUnpriced, seen } = used;
  if (bill === undefined) return;
  const { team } = bill;
  const indexOf = (name: string | null): number =>
    costs.findIndex((line) => line.team === team && line.model === name);
  // Upstreams name models in their answers, and a report must stay bounded however many there are.
  const named = model ?? bill.model;
  const name = indexOf(named) < 0 && costs.length >= COST_LINES_MAX ? null : named;
  const sums = {
    usd,
    inputTokens,
    outputTokens,
    cachedTokens,
    calls: 1,
    unpriced: isUnpriced === true ? 1 : 0,
    waited: 0,
    ...(seen === null && { unreported: 1 }),
  };
  const at = indexOf(name);
  const line = costs[at];
  if (line === undefined) costs.push({ team, model: name, ...sums });
  else costs[at] = { team, model: name, ...addSums(line, sums) };
}
