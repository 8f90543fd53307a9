import type { CallerHeaders } from './caller-headers.ts';
import type { Env } from '../env.ts';
import type { Schedule } from '../runtime/clock.ts';
import type { RoutingTable } from '../config/snapshots.ts';
import type { Background, AbortSource } from '../runtime/async.ts';
import type { CallBody } from './body.ts';
import type { Caller } from './identity/authenticate.ts';
import type { EarlyAnswer } from './early-answer.ts';
import type { FoundFacts } from './refusals/found-facts.ts';

/** One proxied call as it arrived, with the version of the configuration that applies to it. */
export interface ProxyCall {
  readonly request: Request;
  /** The method of the request. Each read of it there crosses into the runtime. */
  readonly method: string;
  /** Aborts when the caller is seen to leave. */
  readonly signal: AbortSource;
  readonly url: URL;
  readonly query: URLSearchParams;
  readonly env: Env;
  readonly ctx: Background;
  readonly table: RoutingTable;
  /** Schedules on the call's own clock. */
  readonly after: Schedule;
  readonly body: CallBody;
  readonly early: EarlyAnswer;
  /** Facts found so far, by which a refusal of the call is counted. */
  readonly found: FoundFacts;
}

export interface AuthenticatedCall extends ProxyCall {
  readonly kind: 'known';
  readonly caller: Caller;
  readonly headers: CallerHeaders;
}
