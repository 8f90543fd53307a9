import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DoubleGroup, type Body } from './double-group.ts';

/** Ways in which a deployment can be broken: each is one that some check has to notice. */
export interface Faults {
  /** Callers that leave keep their places and slots. */
  readonly keepsLeavers?: boolean;
  /** Calls that wait are cut after so long. */
  readonly cutsWaitsAfterMs?: number;
  /** Every call without room is answered so. */
  readonly answers?: { readonly status: number; readonly reason: string };
  /** Calls without room are answered so much later. */
  readonly delayMs?: number;
  /** Calls in the queue beyond so many are forgotten. */
  readonly forgetsBeyond?: number;
  /** The pool begins anew when so many wait. */
  readonly restartsAt?: number;
  /** The upstream's group has twice its slots. */
  readonly overGrants?: boolean;
  /** Streams are cut in their middle. */
  readonly cutsStreams?: boolean;
  /** The provider refuses every second call. */
  readonly refusedByProvider?: boolean;
  /** Each call is counted as two decisions. */
  readonly countsTwice?: boolean;
  /** Every request waits for the configuration. */
  readonly alwaysReadsConfig?: boolean;
  readonly feed?: 'refused' | 'without_snapshot';
  /** Groups cannot be removed. */
  readonly keepsGroups?: boolean;
}

/** As much of a Headgate as a canary looks at. */
export interface Double {
  readonly url: string;
  readonly groups: ReadonlyMap<string, DoubleGroup>;
  /** Tokens that came with requests to the admin API. */
  readonly tokens: ReadonlySet<string>;
  /** Resets all pools, as a deploy does: counts begin anew, and waiting calls wait on. */
  reset(): void;
  close(): Promise<void>;
}

async function bodyOf(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString('utf8');
  return text === '' ? {} : (JSON.parse(text) as Body);
}

const json = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};

const OPENAI = { enabled: true, dialect: 'openai', openai_at: '/v1', anthropic_at: null };

/** Starts a double; without faults every check passes before it. */
export async function startDouble(faults: Faults = {}): Promise<Double> {
  const groups = new Map<string, DoubleGroup>();
  const tokens = new Set<string>();
  let reads = 0;

  const isolate = () => {
    reads += 1;
    return {
      id: 'isolate',
      config_reads: reads,
      config_waits: faults.alwaysReadsConfig ? reads : 1,
    };
  };
  const named = (name: string): DoubleGroup => {
    const group = groups.get(name) ?? new DoubleGroup(name, faults);
    groups.set(name, group);
    return group;
  };
  const onGroup = async (request: IncomingMessage, response: ServerResponse, path: string) => {
    const [name = '', what] = path.split('/');
    if (request.method === 'DELETE') {
      if (faults.keepsGroups) return json(response, 503, { detail: 'not now' });
      groups.delete(name);
      return json(response, 200, {});
    }
    if (request.method === 'GET') {
      const group = groups.get(name);
      if (group === undefined) return json(response, 404, { detail: 'no such group' });
      return json(response, 200, what === 'waiters' ? { waiters: [] } : group.status());
    }
    named(name).configure(await bodyOf(request));
    return json(response, 201, {});
  };
  const onAdmin = async (request: IncomingMessage, response: ServerResponse, path: string) => {
    tokens.add(request.headers.authorization ?? '');
    if (path.startsWith('/groups/')) return onGroup(request, response, path.slice(8));
    if (path.startsWith('/groups')) {
      return json(response, 200, { groups: [...groups.values()].map((group) => group.document()) });
    }
    if (path.startsWith('/upstreams')) {
      const one = { ...OPENAI, id: 'up', secret: null };
      return json(response, 200, path.startsWith('/upstreams/') ? one : { upstreams: [one] });
    }
    if (path === '/isolate') return json(response, 200, isolate());
    return feed(response, faults);
  };
  const metrics = (): string =>
    [...groups.values()]
      .map((group) => `headgate_rejections_total{group="${group.name}"} ${group.decisions()}`)
      .join('\n');
  const onCall = (request: IncomingMessage, response: ServerResponse): void => {
    const model = request.headers['headgate-model'];
    const group = [...groups.values()].find((each) => each.model === model);
    if (group === undefined) return json(response, 404, {});
    group.call(request, response);
  };
  const server: Server = createServer((request, response) => {
    const { url = '' } = request;
    if (url === '/healthz') json(response, 200, { ok: true });
    else if (url === '/metrics') response.end(metrics());
    else if (url.startsWith('/admin/api')) {
      onAdmin(request, response, url.slice(10)).catch(() => response.destroy());
    } else onCall(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    groups,
    tokens,
    reset() {
      for (const group of groups.values()) group.reset();
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function feed(response: ServerResponse, faults: Faults): void {
  if (faults.feed === 'refused') return json(response, 503, { detail: 'no feed' });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(
    faults.feed === 'without_snapshot' ? ': nothing\n\n' : 'event: snapshot\ndata: {}\n\n',
  );
  const beats = setInterval(() => response.write('event: beat\ndata: {}\n\n'), 20);
  response.on('close', () => clearInterval(beats));
}
