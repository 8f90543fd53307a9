import * as z from 'zod';
import { HOLD_KINDS } from '../core/words/ticket.ts';

/** The kind of what holds a slot, or waits for one. */
export const holdKind = (what: string) =>
  z
    .enum(HOLD_KINDS)
    .exactOptional()
    .describe(
      `${what}: a WebSocket session, a turn on a connection, a lease that was asked for by itself, or a run that goes on at its upstream. Absent: a call.`,
    );
