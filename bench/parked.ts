/**
 * Measures what calls that wait cost the isolate of the pool's object, and that of the Worker, each of them in one of
 * its own on plain workerd: the heap of what is alive, as the inspector tells it, and the memory of the process.
 * Parked calls, and calls that are told to ask again later. `--waiters <n>`, once or more: other numbers of them.
 * `--module <path>`: another build than the project's.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { ClientRequest } from 'node:http';
import { request } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ensureBuilt, ROOT } from '../scripts/serve/build.ts';
import { readCompatibility } from '../scripts/serve/workerd-config.ts';
import { residentMiB } from '../test/e2e/support/lifecycle-memory.ts';
import { Inspector, type IsolateHeap } from './support/isolate-heap.ts';
import { printTable } from './support/report.ts';

const WORKER = fileURLToPath(new URL('support/parked-worker.js', import.meta.url));

const { values } = parseArgs({
  options: {
    waiters: { type: 'string', multiple: true, default: ['500', '1000', '2500', '5000'] },
    module: { type: 'string' },
  },
});

const SIZES = values.waiters.map(Number);
const WORKERD = join(ROOT, 'node_modules', '.bin', 'workerd');

/** Connections that are opened at once. */
const AT_ONCE = 64;

/** How long all may rest before memory is read. */
const REST_MS = 1_500;

const quote = (text: string): string => JSON.stringify(text);

/** Writes the configuration: the objects in one service, and who asks in another. */
async function configFor(module: string, disk: string): Promise<string> {
  const { date, flags } = await readCompatibility();
  const runtime = `compatibilityDate = ${quote(date)}, compatibilityFlags = [${flags.map(quote).join(', ')}]`;
  const classes = ['GroupObject', 'DirectoryObject', 'FeedObject'];
  const objects = classes.map(
    (name) => `(className = ${quote(name)}, uniqueKey = ${quote(name)}, enableSql = true)`,
  );
  const bound = ['GROUPS', 'DIRECTORY', 'FEED'].map(
    (name, at) => `(name = ${quote(name)}, durableObjectNamespace = ${quote(classes[at] ?? '')})`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "objects", worker = .objects), (name = "asking", worker = .asking), (name = "disk", disk = (path = ${quote(disk)}, writable = true))],
  sockets = [(name = "asking", address = "127.0.0.1:0", http = (), service = "asking")]
);
const objects :Workerd.Worker = (
  modules = [(name = "index.js", esModule = embed ${quote(module)})], ${runtime},
  durableObjectNamespaces = [${objects.join(', ')}], durableObjectStorage = (localDisk = "disk"),
  bindings = [${bound.join(', ')}, (name = "BOOT_ID", text = "bench")]
);
const asking :Workerd.Worker = (
  modules = [(name = "index.js", esModule = embed "parked-worker.js")], ${runtime},
  bindings = [(name = "GROUPS", durableObjectNamespace = (className = "GroupObject", serviceName = "objects"))]
);
`;
}

/** A workerd with both services. */
interface ParkedPosition {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly port: number;
  readonly objects: Inspector;
  readonly asking: Inspector;
  readonly calls: ClientRequest[];
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Reads from the control pipe which port the socket got. */
function portOf(child: ChildProcess): Promise<number> {
  return new Promise((found, failed) => {
    child.once('exit', () => failed(new Error('workerd did not start')));
    child.stdio[3]?.on('data', (data: Buffer) => {
      for (const line of data.toString('utf8').trim().split('\n')) {
        const { event, socket, port } = JSON.parse(line) as Record<string, unknown>;
        if (event === 'listen' && socket === 'asking') found(Number(port));
      }
    });
  });
}

async function start(dir: string): Promise<ParkedPosition> {
  const inspectorPort = await freePort();
  const child = spawn(
    WORKERD,
    [
      'serve',
      join(dir, 'config.capnp'),
      `--inspector-addr=127.0.0.1:${inspectorPort}`,
      '--control-fd=3',
    ],
    { cwd: dir, stdio: ['ignore', 'ignore', 'ignore', 'pipe'] },
  );
  process.once('exit', () => child.kill('SIGKILL'));
  const port = await portOf(child);
  const [objects, asking] = await Promise.all([
    Inspector.open(inspectorPort, 'objects'),
    Inspector.open(inspectorPort, 'asking'),
  ]);
  await fetch(`http://127.0.0.1:${port}/define`);
  return { child, pid: child.pid ?? 0, port, objects, asking, calls: [] };
}

/** Sends a call that asks for a slot, on a connection of its own; resolves once it was sent on. */
function ask({ port, calls }: ParkedPosition, isLater: boolean): Promise<void> {
  return new Promise((asked, failed) => {
    const path = isLater ? '/?later' : '/';
    const outgoing = request({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      response.on('error', () => undefined);
      response.once('data', () => asked());
    });
    outgoing.on('error', failed);
    outgoing.end();
    calls.push(outgoing);
  });
}

async function fill(place: ParkedPosition, waiters: number, isLater: boolean): Promise<void> {
  // One holds the slot.
  while (place.calls.length <= waiters) {
    const count = Math.min(AT_ONCE, waiters + 1 - place.calls.length);
    await Promise.all(Array.from({ length: count }, () => ask(place, isLater)));
  }
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${place.port}/status`);
    const { queued } = (await response.json()) as { readonly queued: number };
    if (queued === waiters) return;
    await delay(50);
  }
}

interface ParkedMemory {
  readonly objects: IsolateHeap;
  readonly asking: IsolateHeap;
  readonly residentMiB: number;
}

async function memoryOf({ objects, asking, pid }: ParkedPosition): Promise<ParkedMemory> {
  await delay(REST_MS);
  return {
    objects: await objects.heap(),
    asking: await asking.heap(),
    residentMiB: await residentMiB(pid),
  };
}

const total = ({ used, embedder, buffers }: IsolateHeap): number => used + embedder + buffers;

const KIB = 1_024;

/** Computes how much memory each of so many waiters took since `before`. */
function perWaiter(before: ParkedMemory, after: ParkedMemory, waiters: number): string[] {
  const kib = (bytes: number): string => (bytes / KIB / waiters).toFixed(2);
  return [
    kib(after.objects.used - before.objects.used),
    kib(total(after.objects) - total(before.objects)),
    kib(total(after.asking) - total(before.asking)),
    kib((after.residentMiB - before.residentMiB) * KIB * KIB),
    `${(total(after.objects) / KIB / KIB).toFixed(1)} MiB`,
  ];
}

async function measure(dir: string, isLater: boolean): Promise<void> {
  const place = await start(dir);
  try {
    await fill(place, 0, isLater);
    const before = await memoryOf(place);
    const rows: string[][] = [];
    for (const waiters of SIZES) {
      await fill(place, waiters, isLater);
      const after = await memoryOf(place);
      rows.push([waiters.toLocaleString('en'), ...perWaiter(before, after, waiters)]);
    }
    console.log(isLater ? '\nTold to ask again later\n' : '\nParked\n');
    printTable([
      [
        'waiters',
        'object: heap, KiB each',
        'with what it holds outside',
        'Worker: the same',
        'process, both with connections',
        "object's isolate in all",
      ],
      ...rows,
    ]);
  } finally {
    for (const call of place.calls) call.on('error', () => undefined).destroy();
    place.objects.close();
    place.asking.close();
    place.child.removeAllListeners('exit');
    place.child.kill('SIGKILL');
  }
}

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const dir = await mkdtemp(join(tmpdir(), 'headgate-parked-'));
try {
  const module = values.module === undefined ? await ensureBuilt() : resolve(values.module);
  await mkdir(join(dir, 'disk'));
  await cp(module, join(dir, 'index.js'));
  await cp(WORKER, join(dir, 'parked-worker.js'));
  await writeFile(join(dir, 'config.capnp'), await configFor('index.js', join(dir, 'disk')));
  for (const isLater of [false, true]) await measure(dir, isLater);
} finally {
  await rm(dir, { recursive: true, force: true });
}
