import type { Env } from '../env.ts';
import type { Schedule } from '../runtime/call-clock.ts';
import type { EarlierRead } from './locate.ts';
import type { RoutingTable } from '../config/snapshots.ts';
import type { Background } from '../runtime/background.ts';

/** One proxied call, and what has been found out about it. */
export interface ProxyCall {
  readonly request: Request;
  /** Aborts when the caller has gone, as far as anybody notices. */
  readonly signal: AbortSignal;
  /** What was read of its body for an older configuration; null: nothing. */
  readonly earlier: EarlierRead | null;
  readonly url: URL;
  readonly query: URLSearchParams;
  readonly env: Env;
  readonly ctx: Background;
  readonly table: RoutingTable;
  /** Schedules on the call's own clock. */
  readonly after: Schedule;
}
