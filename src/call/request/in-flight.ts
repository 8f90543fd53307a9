import type { Background } from '../../runtime/async.ts';
import type { Departed, Forwarded } from '../../contract/http.ts';

/** The calls in progress in this isolate, and the callers of them that left. */

/** Calls that this isolate is working on, including queued ones. A stream counts until its last byte. */
let count = 0;

export function callsInFlight(): number {
  return count;
}

/**
 * Counts a call until `work` ends, and keeps it alive until then. When a caller leaves before its answer, the runtime
 * drops unguarded work at its next step, and the call would count forever. Therefore `work` must end after its caller
 * has left.
 */
export function countInFlight(work: Promise<unknown>, ctx: Background): void {
  count += 1;
  const end = (): void => {
    count -= 1;
  };
  ctx.waitUntil(work.then(end, end));
}

interface ForwardedRequest {
  readonly cf?: object | undefined;
}

interface AnsweringCall {
  readonly connection: number;
  readonly leave: () => void;
}

/**
 * Cuts calls whose callers the forwarder saw leave, on self-hosted deployments.
 *
 * The runtime aborts a request's signal when it sees the connection closed. If a failed write reveals the close, it
 * drops the answer and aborts nothing (workerd 1.20260918.1, `WorkerEntrypoint::requestImpl`). A silent upstream would
 * then hold the slot until `holds.idle_ms`.
 */
class Departures {
  readonly #underWay = new Set<AnsweringCall>();

  /** Calls `onLeft` if the caller leaves before the work is done. */
  async watch<T>({ cf }: ForwardedRequest, work: Promise<T>, onLeft: () => void): Promise<T> {
    const { connection }: Partial<Forwarded> = { ...cf };
    if (connection === undefined) return work;
    // A promise, because the work to cut belongs to another request than the one that reports the departure.
    const { promise, resolve } = Promise.withResolvers<void>();
    promise.then(onLeft).catch(() => {});
    const call = { connection, leave: resolve };
    this.#underWay.add(call);
    try {
      return await work;
    } finally {
      this.#underWay.delete(call);
    }
  }

  report({ cf }: ForwardedRequest): void {
    const { departed = [] }: Partial<Departed> = { ...cf };
    const gone = new Set(departed);
    for (const { connection, leave } of this.#underWay) {
      if (gone.has(connection)) leave();
    }
  }
}

/** Callers that have left without a report from the runtime. */
export const departures = new Departures();
