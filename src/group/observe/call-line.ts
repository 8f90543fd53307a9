import type { StoredCall } from '../../contract/calls.ts';
import type { CallLogConfig } from '../../contract/config/group.ts';
import type { Decision, DecisionLog } from '../../core/parts/decision-log.ts';
import { attemptOf } from '../../core/stats.ts';
import type { TicketId, InstantMs } from '../../core/words/ids.ts';
import type { Scope } from '../../core/words/signal.ts';
import { MINUTE_MS, type HistoryPoint } from '../../contract/history.ts';
import type { ReportedCalls } from '../../core/parts/prefetches.ts';
import type { GroupState } from '../../core/state.ts';
import { CallsByKind, longest, TENANTS_OF_MINUTE } from '../../history/points.ts';
import { shownScope } from './scope-status.ts';

/** What the decisions about calls become: lines of the call log, and counts of tenants in the history. */

/** Maximum length of a text from callers or upstreams. */
const TEXT_LENGTH_MAX = 128;

/** Whether a decision ended its call. It does not if the call continues elsewhere or asks again. */
export function isEnd({ decided, ended }: Decision): boolean {
  return decided !== 'moved' && ended !== 'unused';
}

/** Returns why an ended call is logged, or null if it is not. */
export function keptFor(decision: Decision, log: CallLogConfig): StoredCall['kept_for'] | null {
  const { leaseId, ticket, notes, used } = decision;
  if (wasRefused(decision)) return 'refused';
  if (attemptOf(leaseId) > 1 || (notes?.sent ?? 1) > 1) return 'retried';
  const { waitedMs, heldMs } = timesOf(decision);
  const longestMs = Math.max(waitedMs ?? 0, heldMs ?? 0);
  if (log.slow_ms !== null && longestMs >= log.slow_ms) return 'slow';
  if (log.cost_usd !== null && used !== undefined && used.usd >= log.cost_usd) return 'cost';
  return chanceOf(ticket.id) < log.sample ? 'sample' : null;
}

function wasRefused({ decided, ended, upstreamSignal, upstreamStatus }: Decision): boolean {
  if (decided === 'rejected') return true;
  if (ended === 'failed' || ended === 'refused' || ended === 'expired') return true;
  if ((upstreamStatus ?? 0) >= 400) return true;
  return upstreamSignal !== null && upstreamSignal.kind !== 'served';
}

function timesOf({ isOfEarlier, arrivedAt, decidedAt, decided, endedAt }: Decision): {
  readonly waitedMs: number | null;
  readonly heldMs: number | null;
} {
  return {
    waitedMs: isOfEarlier === true ? null : Math.max(0, decidedAt - arrivedAt),
    heldMs: decided === 'granted' && endedAt !== null ? Math.max(0, endedAt - decidedAt) : null,
  };
}

/** Returns a number from 0 up to 1 that is the same for all attempts of a call in all its groups (FNV-1a). */
function chanceOf(ticket: TicketId): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < ticket.length; at += 1) {
    hash = Math.imul(hash ^ ticket.charCodeAt(at), 0x01000193);
  }
  // The last characters affect only the low bits, and sequential ids differ in nothing else.
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b);
  return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32;
}

export function lineOf(decision: Decision, why: StoredCall['kept_for'], at: number): StoredCall {
  const { ticket, leaseId, waitedFor, scope, rejection, upstreamStatus, upstreamSignal } = decision;
  const { holder, lane, slots } = ticket;
  const { agent, model, kind } = holder;
  const { notes, used } = decision;
  const { waitedMs, heldMs } = timesOf(decision);
  const member = decision.placed?.member ?? null;
  return {
    at,
    lease: keptText(leaseId),
    tenant: keptText(holder.tenant),
    key: keptText(holder.caller),
    upstream: keptText(holder.upstream),
    outcome: outcomeOf(decision),
    kept_for: why,
    ...(kind !== undefined && { kind }),
    ...(agent !== null && { agent: keptText(agent) }),
    ...(member !== null && { member: keptText(member) }),
    ...(model !== null && { model: keptText(model) }),
    ...(lane !== 'normal' && { lane }),
    ...(slots !== 1 && { slots }),
    ...(waitedMs !== null && { waited_ms: Math.round(waitedMs) }),
    ...(waitedFor !== null && { waited_for: waitedFor }),
    ...(scope !== undefined && { scope: keptScope(scope) }),
    ...(heldMs !== null && { held_ms: Math.round(heldMs) }),
    ...(rejection !== null && { rejection: rejection.reason }),
    ...(upstreamStatus !== null && { upstream_status: upstreamStatus }),
    ...(upstreamSignal !== null && { upstream_said: upstreamSignal.kind }),
    ...(notes?.requestId !== undefined && { upstream_request_id: keptText(notes.requestId) }),
    ...sentOf(decision),
    ...(used !== undefined && {
      input_tokens: used.inputTokens,
      output_tokens: used.outputTokens,
      cost_usd: used.usd,
    }),
  };
}

function keptScope(scope: Scope): NonNullable<StoredCall['scope']> {
  const { model, service_tier: tier, credential } = shownScope(scope);
  const kept = (text: string | null): string | null => (text === null ? null : keptText(text));
  return { model: kept(model), service_tier: kept(tier), credential };
}

/** A call with an answer was sent at least once. */
function sentOf({ notes, upstreamStatus }: Decision): Pick<StoredCall, 'sent'> {
  if (notes?.sent !== undefined) return { sent: notes.sent };
  return upstreamStatus === null ? {} : { sent: 1 };
}

function outcomeOf({ decided, ended }: Decision): StoredCall['outcome'] {
  if (decided === 'rejected') return 'rejected';
  if (decided !== 'granted') return 'left';
  if (ended === null) return 'in_flight';
  return ended === 'unused' ? 'left' : ended;
}

/** Shortens a text from outside to the length that is stored, and by which it is found. */
export function keptText(written: string): string {
  return written.slice(0, TEXT_LENGTH_MAX);
}

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
