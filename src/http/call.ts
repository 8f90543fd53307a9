import type { Env } from '../contract/env.ts';
import type { Schedule } from '../upstream/call-clock.ts';
import type { EarlierRead } from './locate.ts';
import type { RoutingTable } from './snapshots.ts';
import type { Background } from './waiting.ts';

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
