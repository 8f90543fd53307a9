import { MINUTE_MS, type HistoryPoint } from '../../contract/history.ts';
import type { Decision, DecisionLog } from '../../core/parts/decision-log.ts';
import type { InstantMs } from '../../core/words/ids.ts';
import type { ReportedCalls } from '../../core/parts/prefetches.ts';
import type { GroupState } from '../../core/state.ts';
import { CallsByKind, longest, TENANTS_OF_MINUTE } from '../../history/points.ts';
import { isEnd } from './call-line.ts';

/** Maximum tenants counted within a minute. Further ones are not counted, because callers may make up names. */
const COUNTED_MAX = 2_000;

/**
 * Maximum combinations of key, upstream and model that are counted within a minute, and those in its point, at about 60
 * bytes each.
 */
const KINDS_COUNTED_MAX = 200;
const KINDS_OF_MINUTE = 16;

const NAME_LENGTH_MAX = 128;

type TenantCounts = Pick<HistoryPoint, 'tenantsWaited' | 'tenantsHeld' | 'callsOf'>;

/** The calls of a pool's open minute: the number per key, and the wait and slot time per tenant. */
export class MinuteTenants {
  #beganAt: number;
  #waited = new Map<string, number>();
  #held = new Map<string, number>();
  #calls = new CallsByKind(KINDS_COUNTED_MAX);

  constructor(minuteAt: number) {
    this.#beganAt = minuteAt;
  }

  begin(minuteAt: number): void {
    this.#beganAt = minuteAt;
    this.#waited = new Map();
    this.#held = new Map();
    this.#calls = new CallsByKind(KINDS_COUNTED_MAX);
  }

  /** Records what the last event decided and ended. */
  note({ made, over, lent: prefetched }: DecisionLog): void {
    for (const decision of made) this.#noteWait(decision);
    for (const decision of over) {
      this.#noteHold(decision);
      this.#noteCall(decision);
    }
    for (const sum of prefetched) {
      add(this.#held, sum.holder.tenant, sum.heldMs);
      this.#notePrefetched(sum);
    }
  }

  /** Returns the counts of the minute up to `now`, with the slot time of current leases. */
  read({ leases }: GroupState, now: InstantMs): TenantCounts {
    const held = new Map(this.#held);
    const endsAt = Math.min(now, this.#beganAt + MINUTE_MS);
    for (const { holder, slots, grantedAt, phase } of leases.values()) {
      if (phase === 'cooling') continue;
      add(held, holder.tenant, slots * (endsAt - Math.max(grantedAt, this.#beganAt)));
    }
    return {
      tenantsWaited: longest(this.#waited, TENANTS_OF_MINUTE),
      tenantsHeld: longest(held, TENANTS_OF_MINUTE),
      callsOf: this.#calls.most(KINDS_OF_MINUTE),
    };
  }

  /** Counts a call that held slots. Calls on prefetched slots are reported as sums. */
  #noteCall(decision: Decision): void {
    if (decision.decided !== 'granted' || decision.isLent === true || !isEnd(decision)) return;
    const { caller, upstream, model } = decision.ticket.holder;
    this.#calls.add({ caller, upstream, model: model ?? decision.reportedModel ?? null }, 1);
  }

  /** Counts calls on prefetched slots. If they named no model, the models come from the costs of their answers. */
  #notePrefetched({ holder, calls, costs = [] }: ReportedCalls): void {
    const { caller, upstream, model } = holder;
    const reported = model === null ? costs : [];
    for (const line of reported) {
      this.#calls.add({ caller, upstream, model: line.model }, line.calls);
    }
    const unreported = calls - reported.reduce((sum, line) => sum + line.calls, 0);
    if (unreported > 0) this.#calls.add({ caller, upstream, model }, unreported);
  }

  #noteWait({ decided, waitedFor, ticket, arrivedAt, decidedAt }: Decision): void {
    if (waitedFor === null || decided === 'moved') return;
    add(this.#waited, ticket.holder.tenant, decidedAt - arrivedAt);
  }

  /** Adds the part of a hold that lies in this minute. Holds of prefetched slots are reported as sums. */
  #noteHold({ endedAt, decidedAt, ticket, isLent }: Decision): void {
    if (endedAt === null || isLent === true) return;
    add(
      this.#held,
      ticket.holder.tenant,
      ticket.slots * (endedAt - Math.max(decidedAt, this.#beganAt)),
    );
  }
}

function add(times: Map<string, number>, tenant: string, ms: number): void {
  if (ms <= 0) return;
  const name = tenant.slice(0, NAME_LENGTH_MAX);
  const before = times.get(name);
  if (before === undefined && times.size >= COUNTED_MAX) return;
  times.set(name, (before ?? 0) + ms);
}
