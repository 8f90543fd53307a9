import type { Departed, Forwarded } from '../contract/rpc/forwarded.ts';

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
export class Departures {
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
