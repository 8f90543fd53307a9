import type { LentSlots } from '../../contract/rpc/group-rpc.ts';
import { mayBeOld, type RoutingTable } from '../../config/snapshots.ts';
import type { Background } from '../../runtime/background.ts';
import type { Schedule } from '../../runtime/call-clock.ts';
import { LocalLoan, type LocalSlot } from './local-loan.ts';
import { LoanKeeper } from './loan-keeper.ts';
import type { PoolSource } from './pools.ts';

/** Maximum pools whose loans this isolate uses at once: the one that began first goes first. */
const LOANS_MAX = 1_000;

/** The loan of each pool on which calls of this isolate start. */
const loans = new Map<string, LocalLoan>();

/** A way to a pool within one request. */
export interface LoanWay {
  readonly name: string;
  readonly pool: PoolSource;
  readonly ctx: Background;
  readonly after: Schedule;
}

/** Takes a lent slot of a pool for a call that was routed by `table`. Null: it has to ask. */
export function takeLentSlot(
  way: LoanWay,
  table: RoutingTable,
): { readonly loan: LocalLoan; readonly slot: LocalSlot } | null {
  const loan = loans.get(way.name);
  if (loan === undefined) return null;
  if (loan.isOver || loan.isEmpty) {
    loans.delete(way.name);
    return null;
  }
  if (loan.configVersion !== table.snapshot.version || mayBeOld(table)) return null;
  const slot = loan.take();
  seeToKeeper(loan, way);
  return slot === null ? null : { loan, slot };
}

/** Takes in slots that a pool has lent to this isolate, by an answer to what was asked at `askedAt`. */
export function takeInLent(
  way: LoanWay,
  lent: LentSlots,
  configVersion: number,
  askedAt: number,
): void {
  let loan = loans.get(way.name);
  if (loan === undefined || loan.id !== lent.loan || loan.isOver) {
    loan = new LocalLoan(lent.loan, configVersion, askedAt);
    if (loans.size >= LOANS_MAX) loans.delete(loans.keys().next().value ?? '');
    loans.set(way.name, loan);
  }
  loan.configVersion = Math.max(loan.configVersion, configVersion);
  loan.add(lent);
  seeToKeeper(loan, way);
}

/** Has this request keep a loan that nobody keeps. */
export function seeToKeeper(loan: LocalLoan, { pool, ctx, after }: LoanWay): void {
  if (loan.needsKeeper) ctx.waitUntil(new LoanKeeper(loan, pool, after).run());
}
