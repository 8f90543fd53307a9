import type { Upstream } from '../contract/config/upstream.ts';
import { classify, type Operation } from '../upstream/operation/operation.ts';
import { cancelsRun } from '../upstream/operation/runs.ts';
import { classifyUpgrade } from '../upstream/operation/upgrades.ts';
import type { KnownCall } from './call.ts';
import { isUpgrade } from './socket/upgrade.ts';

/**
 * Tells what a call is at an upstream. One that takes no slot by the table of operations does so where a group names its
 * path, and elsewhere if it did where it was sent first (`first`).
 */
export function operationOf(
  { request, query, caller, table: { routes } }: KnownCall,
  upstream: Upstream,
  path: string,
  first: Operation | null = null,
): Operation {
  // A WebSocket is something else than a GET of the same path.
  if (isUpgrade(request)) return classifyUpgrade(path, query, upstream);
  const { method } = request;
  const operation = classify(method, path, query, upstream.dialect);
  // The cancellation of a run must not wait behind what it cancels.
  if (operation.limited || cancelsRun(path)) return operation;
  const { keyIds } = caller;
  const named = routes.namedPath({ upstream, operation: operation.name, method, path, keyIds });
  const limited = named !== 'no' || first?.limited === true;
  return named === 'in all readings'
    ? { ...operation, limited, isNamed: true }
    : { ...operation, limited };
}
