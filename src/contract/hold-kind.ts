import * as z from 'zod';
import { HOLD_KINDS } from '../core/words/ticket.ts';

/** Kind of the holder of a slot, or of a waiter. */
export const holdKind = (what: string) =>
  z
    .enum(HOLD_KINDS)
    .exactOptional()
    .describe(
      `${what}: a WebSocket session, a turn on a WebSocket, a lease acquired over HTTP, or a run that continues at its upstream. Absent for calls.`,
    );
