/** Memory of one isolate, in bytes. */
export interface IsolateHeap {
  readonly used: number;
  /** Objects of the runtime that scripts hold. */
  readonly embedder: number;
  /** Buffers outside of the heap. */
  readonly buffers: number;
}

interface HeapUsage {
  readonly usedSize: number;
  readonly embedderHeapUsedSize?: number;
  readonly backingStorageSize?: number;
}

interface IsolateHeapTarget {
  readonly id: string;
  readonly webSocketDebuggerUrl: string;
}

/** A session with the inspector of a workerd, about one of its services: each has an isolate of its own. */
export class Inspector {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  #last = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const { id, result } = JSON.parse(String(data)) as { id?: number; result?: unknown };
      if (id === undefined) return;
      this.#waiting.get(id)?.(result);
      this.#waiting.delete(id);
    });
  }

  static async open(port: number, service: string): Promise<Inspector> {
    const listed = await fetch(`http://127.0.0.1:${port}/json`);
    const targets = (await listed.json()) as IsolateHeapTarget[];
    const target = targets.find(({ id }) => id === service);
    if (target === undefined) throw new Error(`${service} is not inspected`);
    const socket = new WebSocket(target.webSocketDebuggerUrl);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve, { once: true });
      socket.addEventListener('error', reject, { once: true });
    });
    return new Inspector(socket);
  }

  /** Reads the heap, of what is alive. */
  async heap(): Promise<IsolateHeap> {
    await this.#ask('HeapProfiler.collectGarbage');
    const usage = (await this.#ask('Runtime.getHeapUsage')) as HeapUsage;
    const { usedSize: used, embedderHeapUsedSize: embedder = 0 } = usage;
    return { used, embedder, buffers: usage.backingStorageSize ?? 0 };
  }

  close(): void {
    this.#socket.close();
  }

  #ask(method: string): Promise<unknown> {
    const id = (this.#last += 1);
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#socket.send(JSON.stringify({ id, method }));
    });
  }
}
