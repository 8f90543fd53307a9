import type { PrefetchedSlots } from '../../contract/rpc/group-rpc.ts';
import { mayBeOld, type RoutingTable } from '../../config/snapshots.ts';
import type { Background } from '../../runtime/background.ts';
import type { Schedule } from '../../runtime/call-clock.ts';
import { LocalPrefetch, type LocalSlot } from './local-prefetch.ts';
import { giveBack, PrefetchKeeper } from './prefetch-keeper.ts';
import type { PoolSource } from './pools.ts';

/** Maximum pools whose loans this isolate uses at once. */
const PREFETCHES_MAX = 1_000;

/** The last loan of each pool, on which calls of this isolate start. It stays when it is over, to know answers that come late. */
const prefetches = new Map<string, LocalPrefetch>();

/** A way to a pool within one request. */
export interface PrefetchContext {
  readonly name: string;
  readonly pool: PoolSource;
  readonly ctx: Background;
  readonly after: Schedule;
}

/** Takes a lent slot of a pool for a call that was routed by `table`. Null: it has to ask. */
export function takePrefetchedSlot(
  way: PrefetchContext,
  table: RoutingTable,
): { readonly loan: LocalPrefetch; readonly slot: LocalSlot } | null {
  const prefetch = prefetches.get(way.name);
  if (prefetch === undefined || prefetch.isOver || prefetch.isEmpty) return null;
  if (prefetch.configVersion !== table.snapshot.version || mayBeOld(table)) return null;
  const slot = prefetch.take();
  seeToKeeper(prefetch, way);
  return slot === null ? null : { loan: prefetch, slot };
}

/** Takes in slots that a pool has lent to this isolate, by an answer to what was asked at `askedAt`. */
export function takeInPrefetched(
  way: PrefetchContext,
  prefetched: PrefetchedSlots,
  configVersion: number,
  askedAt: number,
): void {
  const last = prefetches.get(way.name);
  const isSame = last?.id === prefetched.loan;
  const prefetch = isSame ? last : new LocalPrefetch(prefetched.loan, configVersion, askedAt);
  if (last?.comesAfter(prefetched) === true || (last === undefined && !hasRoom())) {
    const { slots, attachment } = prefetched;
    const unused = slots.map((slot) => ({ slot, attachment }));
    return way.ctx.waitUntil(giveBack(prefetch, unused, way.pool, way.after));
  }
  if (!isSame) prefetches.set(way.name, prefetch);
  prefetch.configVersion = Math.max(prefetch.configVersion, configVersion);
  prefetch.add(prefetched);
  seeToKeeper(prefetch, way);
}

/** Whether there is room for the loan of another pool, once those are forgotten on which no call runs. */
function hasRoom(): boolean {
  if (prefetches.size < PREFETCHES_MAX) return true;
  for (const [name, prefetch] of prefetches) if (prefetch.isEmpty) prefetches.delete(name);
  return prefetches.size < PREFETCHES_MAX;
}

/** Has this request keep a loan that nobody keeps. */
export function seeToKeeper(prefetch: LocalPrefetch, { pool, ctx, after }: PrefetchContext): void {
  if (prefetch.needsKeeper) ctx.waitUntil(new PrefetchKeeper(prefetch, pool, after).run());
}
