import type { Upstream } from '../contract/config/upstream.ts';
import type { Dialect } from '../contract/dialect.ts';
import { methodOverride, overridingMethods } from '../upstream/operation/readings.ts';
import { classify, type Operation } from '../upstream/operation/operation.ts';
import { cancelsRun } from '../upstream/operation/runs.ts';
import { classifyTurn, classifyUpgrade } from '../upstream/operation/upgrades.ts';
import type { AuthenticatedCall } from './call.ts';
import { isUpgrade } from './socket/upgrade.ts';

/** A group names the path in all its readings. */
const NAMED = 'in all readings';

/**
 * The operation of a call at an upstream. A call that takes no slot by the table of operations takes one where a group
 * names its path. A call that took a slot where it was sent first (`first`) also takes one elsewhere, and a turn is a
 * turn everywhere.
 */
export function operationOf(
  call: AuthenticatedCall,
  upstream: Upstream,
  path: string,
  first: Operation | null = null,
): Operation {
  const { query, caller, table } = call;
  const { keyIds } = caller;
  if (first?.socket === 'turns') return classifyTurn(path, query, upstream);
  // A WebSocket upgrade is a different operation than a GET of the same path.
  if (isUpgrade(call)) {
    const session = classifyUpgrade(path, query, upstream);
    const at = { upstream, operation: session.name, method: 'GET', path, keyIds };
    const isNamed = session.socket === 'session' && table.routes.namedPath(at) === NAMED;
    return isNamed ? { ...session, isNamed } : session;
  }
  return strictest(call, (method) => {
    const operation = classify(method, path, query, upstream.dialect);
    // The cancellation of a run must not queue behind the run.
    if (operation.limited || cancelsRun(path)) return operation;
    const at = { upstream, operation: operation.name, method, path, keyIds };
    const named = table.routes.namedPath(at);
    const limited = named !== 'no' || first?.limited === true;
    return named === NAMED ? { ...operation, limited, isNamed: true } : { ...operation, limited };
  });
}

/** The operation of a call by its path alone, before its upstream is known. */
export function operationAt(
  call: Pick<AuthenticatedCall, 'request' | 'method' | 'query'>,
  path: string,
  dialect: Dialect,
): Operation {
  return strictest(call, (method) => classify(method, path, call.query, dialect));
}

/** The operation of a call by its method. If that takes no slot, the methods that may override it are checked too. */
function strictest(
  { request, method, query }: Pick<AuthenticatedCall, 'request' | 'method' | 'query'>,
  by: (method: string) => Operation,
): Operation {
  const asSent = by(method);
  if (asSent.limited) return asSent;
  const override = methodOverride(request.headers, query);
  if (override === null) return asSent;
  for (const countsAs of overridingMethods(override)) {
    const operation = by(countsAs);
    if (operation.limited) return { ...operation, countsAs };
  }
  return asSent;
}
