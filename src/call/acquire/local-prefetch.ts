import type {
  GiveBackRequest,
  PrefetchedCalls,
  PrefetchedSlots,
  PrefetchReport,
} from '../../contract/rpc/group-rpc.ts';
import { addSums, type ReportedCost } from '../../core/parts/costs.ts';
import type { Settlement } from '../../core/words/usage.ts';
import { PREFETCH_STARTS_MS, PREFETCH_TTL_MS } from '../../core/words/settings.ts';
import { steadyClock, type SteadyClock } from '../../runtime/steady-clock.ts';

/** How long no call starts until what is not used is given back. */
const IDLE_MS = 250;

/** How long nothing is heard of a keeper until it is lost: it looks four times as often. */
const KEEPER_LOST_MS = 1_000;

/** How long one request keeps a loan before the next call takes over: what goes on behind an answer has half a minute. */
const KEEPER_MAX_MS = 20_000;

/**
 * How long a call may run on a slot until it has died with its context: if it lives, it asks for a lease of its own
 * long before.
 */
const CALL_LOST_MS = PREFETCH_TTL_MS;

/** Maximum calls of a kind that one report tells of one by one: the last ones, as many as are worth remembering. */
const LAST_MAX = 200;

/** Maximum pairs of team and model that one report tells of apart. */
const COST_LINES_MAX = 50;

/** A slot of a loan. */
export interface LocalSlot {
  readonly slot: string;
  readonly attachment: number;
}

/** A call that runs on a lent slot, as it is told of. */
export type PrefetchedCall = Pick<
  PrefetchedCalls,
  'caller' | 'tenant' | 'agent' | 'upstream' | 'model' | 'lane'
> & { readonly leaseId: string };

/** Calls of one kind, as they are added up. */
interface PrefetchedCallSum {
  readonly of: Pick<
    PrefetchedCalls,
    'caller' | 'tenant' | 'agent' | 'upstream' | 'model' | 'lane' | 'status'
  >;
  calls: number;
  heldMs: number;
  readonly last: (readonly [
    leaseId: string,
    beganAt: number,
    endedAt: number,
    requestId: string | undefined,
  ])[];
  /** Null: none of them stands in the costs of the group. */
  costs: ReportedCost[] | null;
}

/**
 * The slots that one instance of a pool has lent to this isolate. Plain data only: what one request began, another one
 * goes on with, and neither may wait for the other.
 */
export class LocalPrefetch {
  readonly id: string;
  /** The version of the configuration by which calls may start on it. */
  configVersion: number;
  readonly #clock: Pick<SteadyClock, 'now'>;
  readonly #free: LocalSlot[] = [];
  /** Slots that calls run on: how many there were when each began, and when that was. */
  readonly #used = new Map<LocalSlot, { readonly atOnce: number; readonly since: number }>();
  /** When the last message was sent that the pool has acknowledged as renewing it. */
  #renewedAt: number;
  #usedAt: number;
  /** Those of them whose calls have asked for leases of their own. */
  readonly #owned = new Set<LocalSlot>();
  /** The most slots that calls ran on when one began that has ended well since the last report. */
  #peak = 0;
  /** The most that calls ran on since it was last seen what is spare. */
  #needed = 0;
  /** The attachment of the slots that were lent last. */
  #newest = 0;
  #isOver = false;
  #isGone = false;
  #ended = new Map<string, PrefetchedCallSum>();
  /** Counts keepers: only the newest goes on. */
  #keeper = 0;
  #keeperBeganAt = -Infinity;
  #keeperSeenAt = -Infinity;

  constructor(
    id: string,
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

  /** Nothing starts on it any more: it was called back, or is not known. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Its pool does not know it, or has given its slots up: what runs on it is on its own. */
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
   * Tells whether slots come too late to be used: their loan was called back, or is one before this. By a second count of the same
   * loan its pool would believe that nobody keeps it, as soon as one of them is at its end.
   */
  comesAfter({ loan: prefetch, attachment }: PrefetchedSlots): boolean {
    return prefetch === this.id ? this.#isOver : attachment < this.#newest;
  }

  add({ slots, attachment }: PrefetchedSlots): void {
    this.#usedAt = this.#clock.now();
    this.#newest = Math.max(this.#newest, attachment);
    for (const slot of slots) this.#free.push({ slot, attachment });
  }

  /** Takes a slot for a call that starts now. Null: it has to ask. */
  take(): LocalSlot | null {
    const now = this.#clock.now();
    if (this.#isOver || now >= this.#renewedAt + PREFETCH_STARTS_MS) return null;
    const slot = this.#free.pop();
    if (slot === undefined) return null;
    this.#used.set(slot, { atOnce: this.#used.size + 1, since: now });
    this.#usedAt = now;
    this.#needed = Math.max(this.#needed, this.#used.size);
    return slot;
  }

  /** Takes a slot back of a call that has ended. True: it is to be given back to the pool. */
  takeBack(slot: LocalSlot): boolean {
    this.#used.delete(slot);
    if (!this.#isOver) this.#free.push(slot);
    return this.#isOver;
  }

  /** Takes note that a call asks for a lease of its own in place of its slot. */
  own(slot: LocalSlot): void {
    if (this.#used.has(slot)) this.#owned.add(slot);
  }

  /** Parts with a slot that its pool knows as the lease of a call by now, or as ended. */
  part(slot: LocalSlot): void {
    this.#used.delete(slot);
    this.#owned.delete(slot);
  }

  /** Notes a call that has ended well, for the next report. */
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
    const { caller, tenant = caller, agent, upstream, model, lane = 'normal', leaseId } = call;
    const key = JSON.stringify([caller, tenant, agent, upstream, model, lane, status]);
    let sum = this.#ended.get(key);
    if (sum === undefined) {
      const of = { caller, tenant, agent, upstream, model, lane, status };
      sum = { of, calls: 0, heldMs: 0, last: [], costs: null };
      this.#ended.set(key, sum);
    }
    sum.calls += 1;
    sum.heldMs += now - beganAt;
    sum.last.push([leaseId, beganAt, now, requestId]);
    if (used !== undefined) addCost((sum.costs ??= []), model, used);
    // Not each time, which would move all of them.
    if (sum.last.length >= 2 * LAST_MAX) sum.last.splice(0, LAST_MAX);
  }

  /** Takes what is to be told since the last report. What gets lost with it is not told again. */
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

  /** Forgets slots of calls that nobody ends any more. Their pool misses them, and has them lapse. */
  #dropLost(now: number): void {
    for (const [slot, { since }] of this.#used) {
      if (now - since >= CALL_LOST_MS && !this.#owned.has(slot)) this.#used.delete(slot);
    }
  }

  noteRenewed(sentAt: number): void {
    this.#renewedAt = sentAt;
  }

  /** Has nothing start on it any more; `isGone`: nor need anybody keep it. */
  end(isGone: boolean): void {
    this.#isOver = true;
    this.#isGone ||= isGone;
  }

  /** Takes out all that is not used, to be given back. */
  takeFree(): LocalSlot[] {
    return this.#free.splice(0);
  }

  /** Takes out what was not used since this was last asked. */
  takeSpare(): LocalSlot[] {
    const kept = this.#needed - this.#used.size;
    this.#needed = this.#used.size;
    return this.#free.splice(0, Math.max(0, this.#free.length - kept));
  }

  get isIdle(): boolean {
    return this.#clock.now() - this.#usedAt >= IDLE_MS;
  }

  /** Makes a request that gives slots back. */
  backOf(slots: readonly LocalSlot[], report: PrefetchReport): GiveBackRequest {
    return { ...report, slots, hasLapsed: this.hasLapsed };
  }

  /** Whether nobody keeps it. */
  get needsKeeper(): boolean {
    if (this.#isOver || this.isEmpty) return false;
    const now = this.#clock.now();
    const isLost = now - this.#keeperSeenAt >= KEEPER_LOST_MS;
    return isLost || now - this.#keeperBeganAt >= KEEPER_MAX_MS;
  }

  /** Begins to keep it. Returns by which number. */
  beginKeeping(): number {
    this.#keeperBeganAt = this.#clock.now();
    this.#keeperSeenAt = this.#keeperBeganAt;
    return (this.#keeper += 1);
  }

  /** Whether a keeper is still the newest; noted that it lives. */
  isKeptBy(keeper: number): boolean {
    if (this.#keeper !== keeper) return false;
    this.#keeperSeenAt = this.#clock.now();
    return true;
  }

  /** Ends the keeping: the next call that starts or ends goes on with it. */
  endKeeping(keeper: number): void {
    if (this.#keeper === keeper) this.#keeperSeenAt = -Infinity;
  }
}

/** Adds the reported use of a call to those of its team and model. `model`: the one that the call named. */
function addCost(costs: ReportedCost[], model: string | null, used: Settlement): void {
  const { bill, usd, inputTokens, outputTokens, cachedTokens = 0, isUnpriced, seen } = used;
  if (bill === undefined) return;
  const { team } = bill;
  const indexOf = (name: string | null): number =>
    costs.findIndex((line) => line.team === team && line.model === name);
  // Upstreams name models in their answers: however many they are, a report is bounded.
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
