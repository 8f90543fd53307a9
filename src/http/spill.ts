import type { Reason } from '../contract/reasons.ts';
import { siblingPath } from '../routing/sibling-path.ts';
import { keepBody, keptBody } from '../upstream/kept-body.ts';
import { renameModel } from '../upstream/model/rename-model.ts';
import { classify } from '../upstream/operation.ts';
import type { Ticket } from './admission.ts';
import { keyFor } from './authenticate.ts';
import { callRules } from './call-rules.ts';
import { bodyBudget } from './isolate.ts';
import type { Leg, SpillStop } from './leg.ts';
import { routedCall } from './send.ts';
import { inSpillOrder } from './spill-order.ts';

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
}

/** Where else a call may go. Nowhere, unless one of its groups says so. */
export async function planSpill(leg: Leg): Promise<SpillPlan> {
  const { call, caller, located, key } = leg;
  if (!call.table.routes.spillsSome) return { stops: [], afterMs: 0 };
  const placements = call.table.routes.place(routedCall(call, located, caller, key));
  const { onSaturated } = callRules(placements);
  // The operator's keys go out behind a gateway key only, and a caller's own goes nowhere else.
  if (typeof onSaturated === 'string' || caller.gatewayKeyId === null) {
    return { stops: [], afterMs: 0 };
  }
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
  return { stops: await inSpillOrder(listed, order, leg), afterMs };
}

/** The ticket of a call that waits here so long, from now on, and then goes on to the next stop. */
export function ticketUntilNext(ticket: Ticket, afterMs: number): Ticket {
  const maxWaitMs = afterMs === 0 ? 0 : Math.round(Date.now() - ticket.enqueuedAt) + afterMs;
  return { ...ticket, maxWaitMs: Math.min(ticket.maxWaitMs ?? Infinity, maxWaitMs) };
}

/** The call as it goes to another upstream; null: it cannot. `left`: its caller has gone meanwhile. */
export async function goTo({ upstream, model }: SpillStop, leg: Leg): Promise<Leg | null | 'left'> {
  const { call, caller, located } = leg;
  const key = await keyFor(upstream, caller, call.table, call.env, true);
  const path = siblingPath(located.upstream, upstream, located.path, model);
  if ('reason' in key || path === null) return null;
  const operation = classify(call.request.method, path, call.query, upstream.dialect);
  const there = { ...located, upstream, path, operation };
  const spilled = { ...leg, key, isSpilled: true };
  if (model === null) return { ...spilled, located: there };
  if (operation.model.from === 'path') return { ...spilled, located: { ...there, model } };
  const kept = await keepBody(located.body, RENAMED_BYTES_MAX, bodyBudget, call.request.signal);
  if (kept === 'aborted') return 'left';
  const bytes = kept?.bytes ?? null;
  const renamed = bytes === null ? null : renameModel(bytes, model);
  if (renamed === null) return null;
  const body = keptBody(renamed, () => kept?.discard());
  return { ...spilled, located: { ...there, model, body } };
}
