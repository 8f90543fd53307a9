import type { StrictRefusalKind } from './refusal.ts';
import { REFUSAL_KINDS } from './refusal.ts';
import type { StrictBehaviour } from './settings.ts';

/** Faults of a call other than a refusal. */
const FAULTS = {
  /** 500 before the first byte. */
  error: () => ({ status: 500 }),
  /** The connection is reset before the first byte. */
  reset: () => ({ resetBeforeHeaders: true }),
  /** It is refused for the address that it comes from. */
  egress: () => ({ egressRefused: 'address' }),
  /** A stream of status 200 ends with an error event half-way. An answer in one piece stays whole. */
  error_event: (chunks) => ({ errorAfterChunks: Math.floor(chunks / 2) }),
  /** A stream breaks off half-way, so that its usage never comes. An answer in one piece stays whole. */
  cut: (chunks) => ({ breakAfterChunks: Math.floor(chunks / 2) }),
} satisfies Record<string, (chunks: number) => Partial<StrictBehaviour>>;

type StrictFault = keyof typeof FAULTS;

/** Failure that a test can ask for: a refusal of a kind, or a fault. */
export type StrictFailure = StrictRefusalKind | StrictFault;

const isFault = (name: string): name is StrictFault => Object.hasOwn(FAULTS, name);
const isRefusal = (name: string): name is StrictRefusalKind =>
  REFUSAL_KINDS.some((kind) => kind === name);

/** Throws where a failure does not exist. */
export function checkFailure(name: string): void {
  if (!isFault(name) && !isRefusal(name)) throw new TypeError(`There is no failure named ${name}.`);
}

/** The kind of refusal that a failure is; null: it is none. */
export function refusalKindOf(failure: StrictFailure | null): StrictRefusalKind | null {
  return failure !== null && isRefusal(failure) ? failure : null;
}

/** A call's behaviour with its fault, if its failure is one. */
export function withFault(
  behaviour: StrictBehaviour,
  failure: StrictFailure | null,
): StrictBehaviour {
  if (failure === null || !isFault(failure)) return behaviour;
  return { ...behaviour, ...FAULTS[failure](behaviour.chunks) };
}

/** Waits that refusals tell if no limit of ours stands behind them. */
export const WAIT_MS: Readonly<Record<StrictRefusalKind, number | null>> = {
  concurrency: null,
  requests: 1_000,
  tokens: 1_000,
  overload: null,
  quota: null,
  long_window: 3_600_000,
  never_fits: null,
  ramp: 1_000,
};

/** Failures that wait for the next calls to come, in the order in which they were asked for. */
export class FailureScript {
  readonly #left: { readonly failure: StrictFailure; calls: number }[] = [];

  add(calls: number, failure: StrictFailure): void {
    checkFailure(failure);
    if (calls > 0) this.#left.push({ failure, calls });
  }

  /** The failure of the call that is here now. */
  take(): StrictFailure | null {
    const next = this.#left[0];
    if (next === undefined) return null;
    next.calls -= 1;
    if (next.calls <= 0) this.#left.shift();
    return next.failure;
  }
}
