/** Memory of one isolate, in MiB. */
export interface IsolateMemory {
  /** Objects of the program. */
  readonly heapMiB: number;
  /** Bytes of its buffers, which stand beside the heap. */
  readonly buffersMiB: number;
}

const MIB = 1_048_576;

interface LifecycleIsolateAnswer {
  readonly id?: number;
  readonly result?: object;
}

/** A connection to the inspector of one isolate. */
class LifecycleIsolateInspector {
  readonly #socket: WebSocket;
  #asked = 0;

  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  ask(method: string): Promise<object> {
    const id = (this.#asked += 1);
    return new Promise((resolve, reject) => {
      const hear = ({ data }: MessageEvent): void => {
        const answer = JSON.parse(String(data)) as LifecycleIsolateAnswer;
        if (answer.id !== id) return;
        this.#socket.removeEventListener('message', hear);
        resolve(answer.result ?? {});
      };
      this.#socket.addEventListener('message', hear);
      this.#socket.addEventListener('close', () => reject(new Error('the inspector has gone')));
      this.#socket.send(JSON.stringify({ id, method }));
    });
  }
}

/** How long one look may take: workerd's inspector now and then drops a connection. */
const LOOK_WITHIN_MS = 15_000;
const LOOKS_MAX = 5;

/** How often the isolate is called meanwhile: one that is idle may not hear its inspector before it has other work. */
const KNOCK_EVERY_MS = 1_000;

/** An isolate of workerd: the port of its inspector, the name of its service, and a URL that it answers. */
export interface IsolateAddress {
  readonly inspectorPort: number;
  readonly service: string;
  readonly url: string;
}

/** Measures what is left in an isolate after its garbage was collected. */
export async function isolateMemory(address: IsolateAddress): Promise<IsolateMemory> {
  for (let looks = 1; ; looks += 1) {
    const socket = new WebSocket(`ws://127.0.0.1:${address.inspectorPort}/${address.service}`);
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error('no answer')), LOOK_WITHIN_MS);
    const knocking = setInterval(() => knock(address.url), KNOCK_EVERY_MS);
    try {
      return await Promise.race([look(socket), late]);
    } catch (error) {
      if (looks === LOOKS_MAX) throw error;
    } finally {
      clearTimeout(timer);
      clearInterval(knocking);
      socket.close();
    }
  }
}

function knock(url: string): void {
  fetch(url).then(
    (response) => response.body?.cancel(),
    () => undefined,
  );
}

async function look(socket: WebSocket): Promise<IsolateMemory> {
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve, { once: true });
    socket.addEventListener('error', () => reject(new Error('no inspector')), { once: true });
  });
  const inspector = new LifecycleIsolateInspector(socket);
  await inspector.ask('HeapProfiler.enable');
  await inspector.ask('HeapProfiler.collectGarbage');
  const usage = (await inspector.ask('Runtime.getHeapUsage')) as {
    readonly usedSize: number;
    readonly backingStorageSize: number;
  };
  return { heapMiB: usage.usedSize / MIB, buffersMiB: usage.backingStorageSize / MIB };
}
