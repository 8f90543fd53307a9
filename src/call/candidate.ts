import type { Upstream } from '../contract/config/upstream.ts';
import type { Caller, UpstreamKey } from './identity/authenticate.ts';
import type { ProxyCall } from './call.ts';
import type { Located } from './locate.ts';

/** Where a call is on its way. */
export interface Leg {
  readonly call: ProxyCall;
  readonly caller: Caller;
  readonly located: Located;
  readonly key: UpstreamKey;
  /** What the call asked for, if this is not its upstream; null: it is. */
  readonly spilledFrom: SpilledFrom | null;
}

/** A call as its caller made it, while it is at another upstream. */
interface SpilledFrom {
  /** Its body is spent unless that was renamed. */
  readonly located: Located;
  readonly isRenamed: boolean;
}

/** The call as its caller made it, wherever it is, with its body as far as that is still there. */
export function asAsked(leg: Leg): Leg {
  if (leg.spilledFrom === null) return leg;
  const { located, isRenamed } = leg.spilledFrom;
  const { body } = isRenamed ? located : leg.located;
  return { ...leg, located: { ...located, body }, spilledFrom: null };
}

/** One upstream that a call may be sent to. */
export interface SpillStop {
  readonly upstream: Upstream;
  /** What the model is called there; null: as the caller calls it. */
  readonly model: string | null;
}
