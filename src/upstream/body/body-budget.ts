import { steadyClock } from '../../runtime/steady-clock.ts';

/** Bytes of request bodies that one isolate holds at a time. An isolate has 128 MB for everything. */
export const BODY_BUDGET_BYTES = 48 * 1024 * 1024;

/** Maximum size of a body that is read without asking the budget. */
export const EXEMPT_BYTES_MAX = 256 * 1024;

/** The most that is read of one body in search of its model. Less than the budget, so that it fits. */
export const SCAN_BYTES_MAX = 32 * 1024 * 1024;

/** How often the first in line look for room. */
const POLL_NEAR_MS = 25;
/** How often the others do: thousands of quick timers would cost more than they gain. */
const POLL_FAR_MS = 250;
/** Places of the line that poll quickly. */
const NEAR = 8;
/** How long a place is kept without a look: then its request has died, and no longer holds up the line. */
const LOST_AFTER_MS = 2_000;

/** A part of the budget, held for one body. */
export interface Reservation {
  readonly bytes: number;
  /** Gives back all but `bytes`. Never takes more. */
  keep(bytes: number): void;
  /** Gives back everything. The second time changes nothing. */
  release(): void;
}

/** Memory that all request bodies of an isolate may hold together. */
export interface BodyBudget {
  /** Bytes that nobody holds. */
  readonly bytesFree: number;
  /** Takes at once, or null: there is no room, or somebody waits for it already. */
  tryTake(bytes: number): Reservation | null;
  /** Takes in order of arrival, as soon as there is room. Null: the signal came first. */
  take(bytes: number, signal: AbortSignal): Promise<Reservation | null>;
}

/**
 * Creates a budget for the whole isolate, shared by its requests.
 *
 * On Workers a request may not resolve a promise that another one awaits, and a request that dies
 * runs no `finally`. So waiters look for themselves on a timer, those that stopped looking are passed
 * over, and a reservation that was lost is given back when it is collected.
 */
export function createBodyBudget(bytesMax: number = BODY_BUDGET_BYTES): BodyBudget {
  let bytesFree = bytesMax;
  const line = new Set<Place>();
  const lost = new FinalizationRegistry<Held>((held) => {
    bytesFree += held.bytes;
  });

  const reserve = (bytes: number): Reservation => {
    bytesFree -= bytes;
    const held: Held = { bytes };
    const keep = (kept: number): void => {
      const given = Math.max(0, held.bytes - kept);
      held.bytes -= given;
      bytesFree += given;
    };
    const reservation: Reservation = {
      get bytes() {
        return held.bytes;
      },
      keep,
      release: () => keep(0),
    };
    lost.register(reservation, held);
    return reservation;
  };

  return {
    get bytesFree() {
      return bytesFree;
    },
    tryTake: (bytes) => (line.size === 0 && bytes <= bytesFree ? reserve(bytes) : null),
    async take(bytes, signal) {
      if (bytes > bytesMax) throw new RangeError(`${bytes} bytes never fit into ${bytesMax}`);
      const place: Place = { seenAt: steadyClock.now() };
      try {
        while (!signal.aborted) {
          place.seenAt = steadyClock.now();
          line.add(place);
          if (firstOf(line) === place && bytes <= bytesFree) return reserve(bytes);
          await pause(isNear(line, place) ? POLL_NEAR_MS : POLL_FAR_MS, signal);
        }
        return null;
      } finally {
        line.delete(place);
      }
    },
  };
}

/** The bytes of a reservation, apart from it, so that its loss can be noticed. */
interface Held {
  bytes: number;
}

/** A waiter's place in the line, in order of insertion. */
interface Place {
  seenAt: number;
}

function firstOf(line: Set<Place>): Place | undefined {
  for (const place of line) {
    if (steadyClock.now() - place.seenAt <= LOST_AFTER_MS) return place;
    line.delete(place);
  }
  return undefined;
}

function isNear(line: Set<Place>, place: Place): boolean {
  let index = 0;
  for (const other of line) {
    if (other === place) return true;
    index += 1;
    if (index === NEAR) return false;
  }
  return false;
}

/** Waits so long, or until the signal. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}
