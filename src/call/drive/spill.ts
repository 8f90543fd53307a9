import type { Reason } from '../../contract/reasons.ts';
import type { Upstream } from '../../contract/config/upstream.ts';
import { siblingPath } from '../../routing/members.ts';
import { steadyClock } from '../../runtime/async.ts';
import type { CallTicket } from '../acquire/admission.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import type { Located } from '../request/locate.ts';
import { groupsWithMembers, mayBeRenamed, RENAMED_BYTES_MAX } from '../plan/member-plan.ts';
import { operationOf } from '../request/operation-of.ts';
import { forbiddenAt, planAt, type Candidate } from '../plan/plan.ts';
import { LEFT, rejected, type CallerLeft, type Rejected } from '../results/result.ts';

/**
 * Reasons for which another upstream would not reject the call. Failed connections are not included: a call whose body
 * is kept goes elsewhere as `NotServed`, and no other has a body left.
 */
const OF_THIS_UPSTREAM: ReadonlySet<Reason> = new Set<Reason>([
  'queue_full',
  'queue_timeout',
  'infeasible',
  'busy',
  'paused',
  'upstream_limited',
  'draining',
  'breaker_open',
  'members_out',
  'budget_exhausted',
  'limiter_unavailable',
  'limiter_overloaded',
  'too_many_bytes_waiting',
]);

export function mayServeElsewhere(reason: Reason): boolean {
  return OF_THIS_UPSTREAM.has(reason);
}

interface SpillEntry {
  readonly upstream: Upstream;
  /** Name of the model there. null if the caller's name is kept. */
  readonly model: string | null;
}

interface SpillCandidate extends Candidate {
  readonly entry: SpillEntry;
  readonly renamesBody: boolean;
}

/** The candidates of a call after its own upstream, and how long it waits at each except the last. */
export interface SpillPlan {
  readonly next: readonly SpillCandidate[];
  readonly afterMs: number;
  /** Timeout in milliseconds for the first content at each of them except the last. null if there is none. */
  readonly firstTokenMs: number | null;
  /** Names of the groups with members in which the call has already been. Each has considered all its members. */
  readonly been: readonly string[];
}

export const NO_SPILL: SpillPlan = { next: [], afterMs: 0, firstTokenMs: null, been: [] };

/** Plans the other candidates of a call. There are none unless one of its groups configures them. */
export async function planSpill(from: Candidate): Promise<SpillPlan> {
  const { call, located, rules } = from;
  const { onSaturated } = rules;
  const been = namesWithMembers(from);
  if (typeof onSaturated === 'string') {
    return { next: [], afterMs: 0, firstTokenMs: null, been };
  }
  const { spill_to: entries, after_ms: afterMs } = onSaturated;
  const firstTokenMs = onSaturated.first_token_ms ?? null;
  const listed = entries.flatMap((entry): SpillEntry[] => {
    const { upstream: id, model } =
      typeof entry === 'string' ? { upstream: entry, model: null } : entry;
    const upstream = call.table.upstreams.get(id);
    if (upstream === undefined || !isOpenTo(call, upstream)) return [];
    // One list may serve several upstreams, each of which spills to the others.
    const isHere = upstream === located.upstream && (model === null || model === located.model);
    return isHere ? [] : [{ upstream, model }];
  });
  const planned = await Promise.all(listed.map((entry) => spillTo(entry, call, located)));
  // A call without another candidate gains nothing by leaving its own queue.
  const possible = planned
    .filter((one) => one !== null)
    .filter((one) => !one.renamesBody || mayBeRenamed(one.call));
  return { next: toOtherGroups(possible, been), afterMs, firstTokenMs, been };
}

/**
 * Omits candidates in a group with members in which the call has already been. None of its members had room, and a
 * rejection by the group as a whole applies to the call under any name of its model.
 */
function toOtherGroups(
  candidates: readonly SpillCandidate[],
  been: readonly string[],
): SpillCandidate[] {
  const seen = new Set(been);
  return candidates.filter((one) => {
    const names = namesWithMembers(one);
    if (names.some((name) => seen.has(name))) return false;
    for (const name of names) seen.add(name);
    return true;
  });
}

function namesWithMembers({ placements }: Candidate): string[] {
  return groupsWithMembers(placements).map(({ name }) => name);
}

/**
 * Returns whether a call may be sent to an upstream, as far as that is known before its groups there. A caller's own
 * key is sent to no other upstream, and the operator's key of an upstream or a member only behind a gateway key.
 */
function isOpenTo({ caller, table: { routes } }: AuthenticatedCall, upstream: Upstream): boolean {
  if (upstream.isKeyless) return true;
  return caller.gatewayKeyId !== null && (upstream.secret !== null || routes.hasMembers);
}

/** The ticket of a call that waits here for this long from now on, and then continues with its next candidate. */
export function ticketUntilNext(ticket: CallTicket, afterMs: number): CallTicket {
  const maxWaitMs = afterMs === 0 ? 0 : Math.round(steadyClock.now() - ticket.enqueuedAt) + afterMs;
  return { ...ticket, maxWaitMs: Math.min(ticket.maxWaitMs ?? Infinity, maxWaitMs) };
}

/** Plans the original call at another upstream. null if it cannot be sent there, whatever its body. */
async function spillTo(
  entry: SpillEntry,
  call: AuthenticatedCall,
  located: Located,
): Promise<SpillCandidate | null> {
  const { upstream, model } = entry;
  const path = siblingPath(located.upstream, upstream, located.path, model);
  if (path === null) return null;
  const operation = operationOf(call, upstream, path, located.operation);
  if (operation.socket === 'unserved') return null;
  if (model !== null && operation.model.from === 'path' && operation.model.value !== model) {
    // The name in this path cannot be changed, so the call would count as one model and be served by another.
    if (path === siblingPath(located.upstream, upstream, located.path, null)) return null;
  }
  const there = { ...located, upstream, path, operation, model: model ?? located.model };
  const candidate = await planAt(call, there, located);
  if (candidate.kind === 'rejected' || forbiddenAt(candidate) !== null) return null;
  const renamesBody = model !== null && operation.model.from !== 'path';
  return { ...candidate, entry, renamesBody };
}

interface SpilledTo {
  readonly kind: 'next';
  readonly candidate: Candidate;
  /** The plan from there. */
  readonly spill: SpillPlan;
}

/** Finds the next possible candidate of the plan, with the body that the call needs there. null if there is none. */
export async function nextCandidate(
  plan: SpillPlan,
  from: Candidate,
): Promise<SpilledTo | Rejected | CallerLeft | null> {
  const { call, located, spilledFrom } = from;
  const { body, table } = call;
  const asCalled = spilledFrom ?? located;
  body.restore();
  // A newer configuration may have others.
  const planned = await Promise.all(
    plan.next.map(async (one) =>
      one.call.table === table ? one : spillTo(one.entry, call, asCalled),
    ),
  );
  const been = [...plan.been, ...namesWithMembers(from)];
  const possible = toOtherGroups(
    planned.filter((one) => one !== null),
    been,
  );
  for (const [index, one] of possible.entries()) {
    const { model } = one.entry;
    // A body that is read for one candidate must be available for the next.
    if (model !== null && asCalled.operation.model.from !== 'path') {
      const kept = await body.keep(RENAMED_BYTES_MAX, call.signal);
      if (kept === 'aborted') return body.fault === null ? LEFT : rejected(body.fault);
    }
    if (one.renamesBody && model !== null) {
      // It stays kept, so that the call cannot be cut meanwhile.
      await body.unpack(call.request, (bytes) => bytes);
      if (!body.rename(model)) continue;
    }
    const spill = { ...plan, next: possible.slice(index + 1), been };
    return { kind: 'next', candidate: one, spill };
  }
  return null;
}
