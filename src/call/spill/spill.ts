import type { Reason, ErrorReply } from '../../contract/reasons.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import { siblingPath } from '../../routing/sibling-path.ts';
import { keepBody, renamedBody, type KeptBody } from '../../upstream/body/kept-body.ts';
import { classify } from '../../upstream/operation/operation.ts';
import type { Ticket } from '../acquire/admission.ts';
import { keyFor } from '../identity/authenticate.ts';
import { callRules } from '../call-rules.ts';
import { bodyBudget } from '../isolate.ts';
import { closedRoute, forbiddenFor } from '../../routing/key-access.ts';
import type { Leg, SpillStop } from '../candidate.ts';
import { routedCall } from '../send.ts';
import type { SpillOrder } from './spill-order.ts';

/** The body of a call that is sent under another model name is kept up to this size. */
const RENAMED_BYTES_MAX = 4_194_304;

/**
 * Refusals of ours that another upstream would not give. What broke on the way to the upstream is not
 * among them: a call whose body is kept goes elsewhere as `Again`, and of any other none is left.
 */
const OF_THIS_UPSTREAM: ReadonlySet<Reason> = new Set<Reason>([
  'queue_full',
  'queue_timeout',
  'infeasible',
  'busy',
  'paused',
  'draining',
  'breaker_open',
  'budget_exhausted',
  'limiter_unavailable',
]);

export function mayServeElsewhere(reason: Reason): boolean {
  return OF_THIS_UPSTREAM.has(reason);
}

/** The upstreams that a call goes to after its own, and how long it waits at each before the last. */
export interface SpillPlan {
  readonly stops: SpillStop[];
  readonly afterMs: number;
  readonly order: SpillOrder;
}

const NOWHERE: SpillPlan = { stops: [], afterMs: 0, order: 'listed' };

/** Where else a call may go. Nowhere, unless one of its groups says so. */
export async function planSpill(leg: Leg): Promise<SpillPlan> {
  const { call, caller, located, key } = leg;
  if (!call.table.routes.spillsSome) return NOWHERE;
  const placements = call.table.routes.place(routedCall(call, located, caller, key));
  const { onSaturated } = callRules(placements);
  // The operator's keys go out behind a gateway key only, and a caller's own goes nowhere else.
  if (typeof onSaturated === 'string' || caller.gatewayKeyId === null) return NOWHERE;
  const { spill_to: entries, after_ms: afterMs, order } = onSaturated;
  const listed = entries.flatMap((entry): SpillStop[] => {
    const { upstream: id, model } =
      typeof entry === 'string' ? { upstream: entry, model: null } : entry;
    const upstream = call.table.upstreams.get(id);
    if (upstream === undefined || upstream.secret === null) return [];
    // One list may serve several upstreams: each goes to the others.
    const isHere = upstream === located.upstream && (model === null || model === located.model);
    return isHere ? [] : [{ upstream, model }];
  });
  const possible = await Promise.all(
    listed.map(async (stop) => ((await canGo(stop, leg)) ? [stop] : [])),
  );
  return { stops: possible.flat(), afterMs, order };
}

/** The ticket of a call that waits here so long, from now on, and then goes on to the next stop. */
export function ticketUntilNext(ticket: Ticket, afterMs: number): Ticket {
  const maxWaitMs = afterMs === 0 ? 0 : Math.round(steadyClock.now() - ticket.enqueuedAt) + afterMs;
  return { ...ticket, maxWaitMs: Math.min(ticket.maxWaitMs ?? Infinity, maxWaitMs) };
}

/** What a stop is like for a call; null: the call cannot go there, whatever its body is. */
async function wayTo({ upstream, model }: SpillStop, leg: Leg) {
  const { call, caller, located } = leg;
  const path = siblingPath(located.upstream, upstream, located.path, model);
  if (path === null) return null;
  const key = await keyFor(upstream, caller, call.table, call.env, true);
  if ('reason' in key) return null;
  const operation = classify(call.request.method, path, call.query, upstream.dialect);
  if (model !== null && operation.model.from === 'path' && operation.model.value !== model) {
    // A path whose name cannot be changed here: the call would count as one model and be served by another.
    if (path === siblingPath(located.upstream, upstream, located.path, null)) return null;
  }
  const there = { ...located, upstream, path, operation, model: model ?? located.model };
  const placements = call.table.routes.place(routedCall(call, there, caller, key));
  if (caller.key !== null) {
    if (forbiddenFor(caller.key, placements) !== null) return null;
    if (closedRoute(caller.key, there, call.request) !== null) return null;
  }
  return { key, path, operation, renamesBody: model !== null && operation.model.from !== 'path' };
}

/**
 * Whether a call can go to a stop, as far as that can be told before its body was read. One that can go
 * nowhere else has nothing to gain from leaving its own queue.
 */
async function canGo(stop: SpillStop, leg: Leg): Promise<boolean> {
  const way = await wayTo(stop, leg);
  if (way === null || !way.renamesBody) return way !== null;
  const { contentLength } = leg.located.body;
  const isPlain = /^(identity)?$/.test(leg.call.request.headers.get('content-encoding') ?? '');
  return isPlain && contentLength !== null && contentLength <= RENAMED_BYTES_MAX;
}

/**
 * The call with its body at hand, where a stop wants another model in it: what is read for one stop must
 * be there for the next. `left`: its caller has gone meanwhile. A refusal: the rest of it may not go out.
 */
export async function withBodyFor(
  { model }: SpillStop,
  leg: Leg,
): Promise<Leg | ErrorReply | 'left'> {
  const { call, located } = leg;
  if (model === null || located.operation.model.from === 'path') return leg;
  const kept = await keepBody(located.body, RENAMED_BYTES_MAX, bodyBudget, call.signal);
  if (kept === 'aborted') return located.body.watch?.fault ?? 'left';
  return kept === null ? leg : { ...leg, located: { ...located, body: kept } };
}

/** The call, as its caller made it, on its way to another upstream; null: it cannot go there. */
export async function goTo(stop: SpillStop, asked: Leg): Promise<Leg | null> {
  const way = await wayTo(stop, asked);
  if (way === null) return null;
  const { upstream, model } = stop;
  const { key, path, operation, renamesBody: isRenamed } = way;
  const { located } = asked;
  const there = { ...located, upstream, path, operation, model: model ?? located.model };
  const leg = { ...asked, key, located: there, spilledFrom: { located, isRenamed } };
  if (model === null || !isRenamed) return leg;
  const { body } = located;
  const renamed = 'bytes' in body ? renamedBody(body as KeptBody, model) : null;
  return renamed === null ? null : { ...leg, located: { ...there, body: renamed } };
}
