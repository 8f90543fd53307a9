import { instant, type InstantMs, type TicketId } from '../words/ids.ts';

/**
 * Calls that the upstream refused for concurrency, since it last took one that was granted later. From the
 * second refusal on they let those go first whom it refused less often: where its capacity has fallen below
 * what is in flight, each slot that comes free may cost a refusal, and the oldest would meet them all. Kept
 * in memory only: after a reset they go by their age alone.
 */
export interface TurnedBack {
  readonly refusals: Map<TicketId, number>;
  /** The most refusals of one of them. */
  refusalsMax: number;
  refusedAt: InstantMs;
}

/** So many calls are remembered; beyond that all are forgotten, and go by their age. */
const TICKETS_MAX = 1_000;

/** Nobody was refused. */
export function noneTurnedBack(): TurnedBack {
  return { refusals: new Map(), refusalsMax: 0, refusedAt: instant(0) };
}

/** The upstream refused a call because too many were in flight. */
export function noteTurnedBack(turnedBack: TurnedBack, ticketId: TicketId, now: InstantMs): void {
  const { refusals } = turnedBack;
  if (refusals.size >= TICKETS_MAX) forgetTurnedBack(turnedBack);
  const count = refusalsOf(turnedBack, ticketId) + 1;
  refusals.set(ticketId, count);
  turnedBack.refusalsMax = Math.max(turnedBack.refusalsMax, count);
  turnedBack.refusedAt = now;
}

/** The upstream took a call: if it was granted after the last refusal, there is room again. */
export function noteTaken(turnedBack: TurnedBack, grantedAt: InstantMs): void {
  if (grantedAt > turnedBack.refusedAt) forgetTurnedBack(turnedBack);
}

/** How often a call was refused while there was no room. */
export function refusalsOf({ refusals }: TurnedBack, ticketId: TicketId): number {
  return refusals.get(ticketId) ?? 0;
}

/** Everybody goes by age again. */
export function forgetTurnedBack(turnedBack: TurnedBack): void {
  turnedBack.refusals.clear();
  turnedBack.refusalsMax = 0;
}
