import type { Upstream } from '../contract/upstream.ts';
import type { Caller, UpstreamKey } from './authenticate.ts';
import type { ProxyCall } from './call.ts';
import type { Located } from './locate.ts';

/** Where a call is on its way. */
export interface Leg {
  readonly call: ProxyCall;
  readonly caller: Caller;
  readonly located: Located;
  readonly key: UpstreamKey;
  /** The call did not ask for this upstream: a provider key that it brought is for another one. */
  readonly isSpilled: boolean;
}

/** One upstream that a call may be sent to. */
export interface SpillStop {
  readonly upstream: Upstream;
  /** What the model is called there; null: as the caller calls it. */
  readonly model: string | null;
}
