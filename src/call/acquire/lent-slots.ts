import type { PrefetchedSlots } from '../../contract/rpc/group-rpc.ts';
import { mayBeOld, type RoutingTable } from '../../config/snapshots.ts';
import type { Background } from '../../runtime/background.ts';
import type { Schedule } from '../../runtime/call-clock.ts';
import { LocalPrefetch, type LocalSlot } from './local-loan.ts';
import { giveBack, PrefetchKeeper } from './loan-keeper.ts';
import type { PoolSource } from './pools.ts';

/** Maximum pools whose loans this isolate uses at once. */
const LOANS_MAX = 1_000;

/** The last loan of each pool, on which calls of this isolate start. It stays when it is over, to know answers that come late. */
const loans = new Map<string, LocalPrefetch>();

/** A way to a pool within one request. */
export interface PrefetchContext {
  readonly name: string;
  readonly pool: PoolSource;
  readonly ctx: Background;
  readonly after: Schedule;
}

/** Takes a lent slot of a pool for a call that was routed by `table`. Null: it has to ask. */
export function takeLentSlot(
  way: PrefetchContext,
  table: RoutingTable,
): { readonly loan: LocalPrefetch; readonly slot: LocalSlot } | null {
  const loan = loans.get(way.name);
  if (loan === undefined || loan.isOver || loan.isEmpty) return null;
  if (loan.configVersion !== table.snapshot.version || mayBeOld(table)) return null;
  const slot = loan.take();
  seeToKeeper(loan, way);
  return slot === null ? null : { loan, slot };
}

/** Takes in slots that a pool has lent to this isolate, by an answer to what was asked at `askedAt`. */
export function takeInLent(
  way: PrefetchContext,
  lent: PrefetchedSlots,
  configVersion: number,
  askedAt: number,
): void {
  const last = loans.get(way.name);
  const isSame = last?.id === lent.loan;
  const loan = isSame ? last : new LocalPrefetch(lent.loan, configVersion, askedAt);
  if (last?.comesAfter(lent) === true || (last === undefined && !hasRoom())) {
    const { slots, attachment } = lent;
    const unused = slots.map((slot) => ({ slot, attachment }));
    return way.ctx.waitUntil(giveBack(loan, unused, way.pool, way.after));
  }
  if (!isSame) loans.set(way.name, loan);
  loan.configVersion = Math.max(loan.configVersion, configVersion);
  loan.add(lent);
  seeToKeeper(loan, way);
}

/** Whether there is room for the loan of another pool, once those are forgotten on which no call runs. */
function hasRoom(): boolean {
  if (loans.size < LOANS_MAX) return true;
  for (const [name, loan] of loans) if (loan.isEmpty) loans.delete(name);
  return loans.size < LOANS_MAX;
}

/** Has this request keep a loan that nobody keeps. */
export function seeToKeeper(loan: LocalPrefetch, { pool, ctx, after }: PrefetchContext): void {
  if (loan.needsKeeper) ctx.waitUntil(new PrefetchKeeper(loan, pool, after).run());
}
