import type { CallQuery, CallsFound, StoredCall } from '../../contract/calls.ts';
import { ticketOf, type LeaseId } from '../../core/words/ids.ts';
import { keptText } from './call-line.ts';
import type { CallRow } from './call-rows.ts';

/** Maximum rows that one search of a pool reads. The next search continues there. */
const ROWS_READ_MAX = 1_000;

/** Finds calls in rows, latest first. `unwritten` are the calls in no row yet, latest first. */
export function searchCalls(
  filter: CallQuery,
  unwritten: readonly StoredCall[],
  rows: Iterable<CallRow>,
): CallsFound {
  const { fromMs, limit } = filter;
  const matches = matching(filter);
  const calls = unwritten.filter(matches);
  let doneTo = unwritten.at(-1)?.at ?? Infinity;
  let read = 0;
  for (const row of rows) {
    if (row.until < fromMs) break;
    const isEnough = calls.length >= limit || read >= ROWS_READ_MAX;
    // Calls of one instant are returned together, or the next search would miss some.
    if (isEnough && row.until < doneTo) return { calls, doneTo };
    read += 1;
    doneTo = Math.min(doneTo, row.at);
    calls.push(...row.calls.filter(matches).toReversed());
  }
  return { calls, doneTo: fromMs };
}

/** Shortens the texts of a query as they are shortened in lines. */
export function asKept(query: CallQuery): CallQuery {
  const cut = Object.entries(query).map(([name, value]) => {
    if (Array.isArray(value)) return [name, value.map(keptText)];
    return [name, typeof value === 'string' ? keptText(value) : value];
  });
  return Object.fromEntries(cut) as CallQuery;
}

/** Returns texts of which at least one must occur in a row with a matching call. If empty, any row may match. */
export function textsOf({
  anyOf,
  leases,
  agent,
  tenant,
  key,
  model,
  requestId,
}: CallQuery): string[] {
  // The rarest field is used, because the others would match more rows.
  const wanted =
    leases ?? anyOf ?? one(requestId) ?? one(agent) ?? one(key) ?? one(tenant) ?? one(model);
  // Escaped as in JSON.
  return (wanted ?? []).map((text) => JSON.stringify(text).slice(1, -1));
}

function one(text: string | undefined): string[] | undefined {
  return text === undefined ? undefined : [text];
}

export function matching(filter: CallQuery): (call: StoredCall) => boolean {
  const { fromMs, toMs, agent, tenant, key, model, requestId, outcome } = filter;
  const anyOf = filter.anyOf && new Set(filter.anyOf);
  const leases = filter.leases && new Set(filter.leases);
  return (call) => {
    if (call.at < fromMs || call.at >= toMs) return false;
    if (leases !== undefined && !namesLease(leases, call)) return false;
    if (anyOf !== undefined && !namesAny(anyOf, call)) return false;
    return (
      (agent === undefined || call.agent === agent) &&
      (tenant === undefined || call.tenant === tenant) &&
      (key === undefined || call.key === key) &&
      (model === undefined || call.model === model) &&
      (requestId === undefined || call.upstream_request_id === requestId) &&
      (outcome === undefined || call.outcome === outcome)
    );
  };
}

function namesLease(names: ReadonlySet<string>, { lease }: StoredCall): boolean {
  return names.has(lease) || names.has(ticketOf(lease as LeaseId));
}

function namesAny(names: ReadonlySet<string>, call: StoredCall): boolean {
  const { agent, tenant, key, model, upstream_request_id: requestId } = call;
  return (
    namesLease(names, call) ||
    [agent, tenant, key, model, requestId].some((name) => name !== undefined && names.has(name))
  );
}
