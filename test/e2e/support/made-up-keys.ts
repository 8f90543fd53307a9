import { readdir, readFile, readlink } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface StormOptions {
  /** Headgate's base URL. */
  readonly url: string;
  /** Keys that are made up, one call each. */
  readonly keys: number;
  readonly keysPerSecond: number;
  /** Maximum of calls in flight. On a slow machine the rate falls instead. @default no maximum */
  readonly inFlightMax?: number;
  /** Where they are sent; the upstream behind it takes `x-strict-status`. */
  readonly path: string;
  /** @default none */
  readonly headers?: Readonly<Record<string, string>>;
  /** From where they are sent. @default wherever the machine sends them from */
  readonly from?: string;
}

/** Outcome of the calls of a storm. */
export interface StormResult {
  /** How many calls were answered with which status; 0: the connection broke. */
  readonly statuses: Readonly<Record<number, number>>;
  readonly tookMs: number;
}

const BODY = JSON.stringify({
  model: 'practice',
  messages: [{ role: 'user', content: 'Let me in.' }],
});

/** Sends calls with keys that the upstream refuses, each with one of its own, at a steady rate. */
export async function storm(options: StormOptions): Promise<StormResult> {
  const { url, keys, keysPerSecond, inFlightMax = keys, path, headers = {}, from } = options;
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 4_000,
    ...(from !== undefined && { localAddress: from }),
  });
  const statuses: Record<number, number> = {};
  const startedAt = performance.now();
  const call = (key: number): Promise<number> =>
    new Promise((resolve) => {
      const outgoing = request(`${url}${path}`, {
        method: 'POST',
        agent,
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(BODY),
          authorization: `Bearer sk-made-up-${key}-${crypto.randomUUID()}`,
          'x-strict-status': '401',
          ...headers,
        },
      });
      outgoing.once('response', (response) => {
        response.resume();
        response.once('close', () => resolve(response.statusCode ?? 0));
      });
      outgoing.once('error', () => resolve(0));
      outgoing.end(BODY);
    });
  const inFlight = new Set<Promise<void>>();
  for (let sent = 0; sent < keys; sent += 1) {
    const dueMs = (sent / keysPerSecond) * 1_000 - (performance.now() - startedAt);
    if (dueMs > 5) await delay(dueMs);
    if (inFlight.size >= inFlightMax) await Promise.race(inFlight);
    const one = call(sent).then((status) => {
      statuses[status] = (statuses[status] ?? 0) + 1;
      inFlight.delete(one);
    });
    inFlight.add(one);
  }
  await Promise.all(inFlight);
  agent.destroy();
  return { statuses, tookMs: performance.now() - startedAt };
}

/** Measures a process and its data folder. */
export async function footprint(
  pid: number,
  dataDir: string,
): Promise<{ readonly open: number; readonly files: number; readonly megabytes: number }> {
  const [open, files, status] = await Promise.all([
    readdir(`/proc/${pid}/fd`),
    readdir(join(dataDir, 'objects'), { recursive: true }),
    readFile(`/proc/${pid}/status`, 'utf8'),
  ]);
  const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]);
  return { open: open.length, files: files.length, megabytes: kilobytes / 1_024 };
}

/** Counts the files of a class of objects that a process has open. */
export async function openFiles(pid: number, className: string): Promise<number> {
  const open = await readdir(`/proc/${pid}/fd`);
  const paths = open.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => ''));
  return (await Promise.all(paths)).filter((path) => path.includes(`/${className}/`)).length;
}
