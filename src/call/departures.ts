import type { Departed, Forwarded } from '../contract/rpc/forwarded.ts';

/** A request as the forwarder passes it on. */
interface ForwardedRequest {
  readonly cf?: object | undefined;
}

/** A call whose answer is on its way. */
interface AnsweringCall {
  readonly connection: number;
  readonly leave: () => void;
}

/**
 * Cuts calls whose callers the forwarder saw leave, where Headgate hosts itself.
 *
 * The runtime aborts a request's signal when it sees the connection closed. When it finds out by a write that
 * fails, it drops the answer and aborts nothing (workerd 1.20260918.1, `WorkerEntrypoint::requestImpl`): an
 * upstream that is silent from then on would hold the slot until `holds.idle_ms`.
 */
export class Departures {
  readonly #underWay = new Set<AnsweringCall>();

  /** Calls `onLeft` if the caller leaves before the work is done. */
  async watch<T>({ cf }: ForwardedRequest, work: Promise<T>, onLeft: () => void): Promise<T> {
    const { connection }: Partial<Forwarded> = { ...cf };
    if (connection === undefined) return work;
    // A promise, because what is to be cut belongs to another request than the one that tells of it.
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

  /** Takes in what the forwarder tells. */
  report({ cf }: ForwardedRequest): void {
    const { departed = [] }: Partial<Departed> = { ...cf };
    const gone = new Set(departed);
    for (const { connection, leave } of this.#underWay) {
      if (gone.has(connection)) leave();
    }
  }
}
