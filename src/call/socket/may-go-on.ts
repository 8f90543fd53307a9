import { routingTable } from '../../config/snapshots.ts';
import type { KnownCall } from '../call.ts';
import { identify } from '../identity/authenticate.ts';

/**
 * Tells why a WebSocket must end whose key or whose groups have changed since it began; null: it may go on. `groups`: those
 * whose slots it holds. A call that is under way goes on to its end; a session has none of its own.
 */
export async function whyEnd(
  { env, ctx, caller, request, query }: KnownCall,
  groups: ReadonlySet<string>,
): Promise<'draining' | 'key_invalid' | null> {
  const table = await routingTable(env, ctx);
  if (table === null) return null;
  const { config } = table.snapshot;
  if (caller.key !== null) {
    // By the key as it was sent: what has its id by now may be another one.
    const { kind } = await identify(table, request.headers, query);
    if (kind === 'rejected') return 'key_invalid';
  }
  const all = [...config.groups, ...config.auto_groups];
  return all.some(({ name, draining }) => draining && groups.has(name)) ? 'draining' : null;
}
