import { until, worker } from '../support/worker.ts';

/** The end of a WebSocket, as its client saw it. */
interface SocketsClientClosed {
  readonly code: number;
  readonly reason: string;
}

/** A message in JSON. */
interface SocketEvent {
  readonly type?: string;
  readonly [name: string]: unknown;
}

/** A client's WebSocket, with all that came of it. */
export interface TestSocketClient {
  readonly response: Response;
  readonly frames: (string | ArrayBuffer)[];
  /** Events in JSON, as far as messages are that. */
  events(): SocketEvent[];
  send(message: string | ArrayBuffer | object): void;
  close(code?: number, reason?: string): void;
  closed(): SocketsClientClosed | null;
}

/** The clients that a test has connected. */
const open: TestSocketClient[] = [];

/** Closes all clients of a test that are open yet. */
export function closeAll(): void {
  for (const client of open.splice(0)) if (client.closed() === null) client.close(1000);
}

/** Asks for a WebSocket, and gets whatever the answer is. */
export function upgrade(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return worker.fetch(`https://headgate.test${path}`, {
    headers: { upgrade: 'websocket', ...headers },
  });
}

/** Connects a client. */
export async function connect(
  path: string,
  headers: Record<string, string> = {},
): Promise<TestSocketClient> {
  const response = await upgrade(path, headers);
  const { webSocket } = response;
  if (webSocket === null) throw new Error(`${response.status}: ${await response.text()}`);
  const frames: (string | ArrayBuffer)[] = [];
  let closed: SocketsClientClosed | null = null;
  (webSocket as { binaryType?: string }).binaryType = 'arraybuffer';
  webSocket.addEventListener('message', ({ data }) => {
    frames.push(data as string | ArrayBuffer);
  });
  webSocket.addEventListener('close', ({ code, reason }) => {
    closed = { code, reason };
  });
  webSocket.accept();
  const client: TestSocketClient = {
    response,
    frames,
    events: () => frames.flatMap((frame) => (typeof frame === 'string' ? [JSON.parse(frame)] : [])),
    send: (message) =>
      webSocket.send(
        typeof message === 'string' || message instanceof ArrayBuffer
          ? message
          : JSON.stringify(message),
      ),
    close: (code, reason) => webSocket.close(code, reason),
    closed: () => closed,
  };
  open.push(client);
  return client;
}

/** Waits for the end of a client's WebSocket. */
export async function endOf(client: TestSocketClient): Promise<SocketsClientClosed | null> {
  await until(() => {
    if (client.closed() === null) throw new Error('it is open');
  });
  return client.closed();
}

/** Waits until a client has got an event of a type, so many times. Returns the last one. */
export async function untilEvent(
  client: TestSocketClient,
  type: string,
  times = 1,
): Promise<SocketEvent | undefined> {
  const seen = (): SocketEvent[] => client.events().filter((event) => event.type === type);
  await until(() => {
    if (seen().length < times) throw new Error(`no ${type}: ${JSON.stringify(client.frames)}`);
  });
  return seen().at(-1);
}

/** A request for a response. */
export function create(text: string, fields: object = {}): object {
  return { type: 'response.create', model: 'gpt-5', input: text, store: false, ...fields };
}

/** Hashes a gateway key as the configuration has it. */
export async function keyHash(key: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(key));
  return `sha256:${new Uint8Array(digest).toHex()}`;
}
