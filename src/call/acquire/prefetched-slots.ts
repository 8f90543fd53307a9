import type { PrefetchedShare } from '../../core/parts/prefetches.ts';
import { isolateConfig } from '../../config/isolate-config.ts';
import type { RoutingTable } from '../../config/snapshots.ts';
import type { Background } from '../../runtime/async.ts';
import type { Schedule } from '../../runtime/clock.ts';
import { LocalPrefetch, type LocalSlot } from './local-prefetch.ts';
import { giveBack, PrefetchKeeper } from './prefetch-keeper.ts';
import type { PoolSource } from './pools.ts';

/** Maximum pools whose prefetched slots this isolate uses at the same time. */
const PREFETCHES_MAX = 1_000;

/**
 * The last prefetch of each pool, on which calls of this isolate start. It stays after its end, to recognize late
 * answers.
 */
const prefetches = new Map<string, LocalPrefetch>();

export interface PrefetchContext {
  readonly name: string;
  readonly pool: PoolSource;
  readonly ctx: Background;
  readonly after: Schedule;
}

/** Takes a prefetched slot of a pool for a call that was routed by `table`. null if the call has to ask the pool. */
export function takePrefetchedSlot(
  access: PrefetchContext,
  table: RoutingTable,
): { readonly loan: LocalPrefetch; readonly slot: LocalSlot } | null {
  const prefetch = prefetches.get(access.name);
  if (prefetch === undefined || prefetch.isOver || prefetch.isEmpty) return null;
  if (prefetch.configVersion !== table.snapshot.version || isolateConfig.mayBeOld(table)) {
    return null;
  }
  const slot = prefetch.take();
  seeToKeeper(prefetch, access);
  return slot === null ? null : { loan: prefetch, slot };
}

/** Adds slots that a pool has prefetched to this isolate. `askedAt` is when the answered request was sent. */
export function takeInPrefetched(
  access: PrefetchContext,
  prefetched: PrefetchedShare,
  configVersion: number,
  askedAt: number,
): void {
  const last = prefetches.get(access.name);
  const isSame = last?.id === prefetched.loan;
  const prefetch = isSame ? last : new LocalPrefetch(prefetched.loan, configVersion, askedAt);
  if (last?.comesAfter(prefetched) === true || (last === undefined && !hasRoom())) {
    const { slots, attachment } = prefetched;
    const unused = slots.map((slot) => ({ slot, attachment }));
    return access.ctx.waitUntil(giveBack(prefetch, unused, access.pool, access.after));
  }
  if (!isSame) prefetches.set(access.name, prefetch);
  prefetch.configVersion = Math.max(prefetch.configVersion, configVersion);
  prefetch.add(prefetched);
  seeToKeeper(prefetch, access);
}

/** Whether there is room for the slots of another pool, once prefetches without calls are dropped. */
function hasRoom(): boolean {
  if (prefetches.size < PREFETCHES_MAX) return true;
  for (const [name, prefetch] of prefetches) if (prefetch.isEmpty) prefetches.delete(name);
  return prefetches.size < PREFETCHES_MAX;
}

/** Makes this request keep a prefetch that no request keeps. */
export function seeToKeeper(prefetch: LocalPrefetch, { pool, ctx, after }: PrefetchContext): void {
  if (prefetch.needsKeeper) ctx.waitUntil(new PrefetchKeeper(prefetch, pool, after).run());
}
