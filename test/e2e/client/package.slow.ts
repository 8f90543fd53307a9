// The client package from its tarball, in the Nodes that there are, in a Worker, and in several of them at once.
import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'vite';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { ROOT } from '../../../scripts/serve/build.ts';
import { startWorkerd, type WorkerdProcess } from '../../../scripts/serve/workerd.ts';
import { readCompatibility, serviceName } from '../../../scripts/serve/workerd-config.ts';
import { CLIENT_KEY, startClientStage } from '../support/client-stage.ts';
import { runToEnd } from '../support/command-line.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { installPackedClient, MACHINE_PATH, type PackedClient } from '../support/packed-client.ts';

const run = promisify(execFile);

const LIMIT = 3;

/** A registry that is slow, or a machine that is busy. */
const INSTALLING = 300_000;

let client: PackedClient;
let stage: LifecycleStage;
let worker: WorkerdProcess;

beforeAll(async () => {
  [client, stage] = await Promise.all([installPackedClient(), startClientStage(LIMIT)]);
  worker = await startWorker();
}, INSTALLING);

afterAll(async () => {
  await Promise.all([worker?.kill9(), stage?.close()]);
  await client?.remove();
});

beforeEach(() => stage.upstream.reset());

/** Bundles the Worker as its author would, and starts it. */
async function startWorker(): Promise<WorkerdProcess> {
  await build({
    root: client.folder,
    logLevel: 'warn',
    ssr: { noExternal: true },
    build: {
      ssr: join(client.folder, 'worker.mjs'),
      outDir: join(client.folder, 'bundled'),
      rolldownOptions: { output: { entryFileNames: 'worker.js' } },
    },
  });
  const { date } = await readCompatibility();
  const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "worker", worker = (
      modules = [(name = "worker.js", esModule = embed "bundled/worker.js")],
      compatibilityDate = ${JSON.stringify(date)},
      globalOutbound = "internet"
    )),
    (name = "internet", network = (allow = ["public", "private"]))
  ],
  sockets = [(name = "${serviceName(0)}", address = "127.0.0.1:0", http = (), service = "worker")]
);
`;
  const onLog = (line: string): void => console.error(line);
  return startWorkerd({ dataDir: client.folder, config, workers: 1, env: process.env, onLog });
}

const task = (count: number): string =>
  JSON.stringify({ url: stage.url(), key: CLIENT_KEY, provider: stage.upstream.url, count });

/** The Nodes here: the project's own, and that of the machine. */
const NODES = [
  { name: 'the project’s Node', node: process.execPath },
  { name: 'the machine’s Node', node: 'node' },
] as const;

async function inNode(node: string, count: number): Promise<string> {
  const env = { PATH: MACHINE_PATH };
  const ended = await runToEnd([node, 'main.mjs', task(count)], { cwd: client.folder, env });
  return `${ended.out}${ended.err}`.trim();
}

async function inWorker(count: number): Promise<string> {
  const url = `http://127.0.0.1:${worker.ports[0]}`;
  return (await fetch(url, { method: 'POST', body: task(count) })).text();
}

it('holds what is run, its types and its page, and brings nothing along', async () => {
  const others = client.files.filter((path) => !/^dist\/[a-z-]+\.(?:js|d\.ts)$/.test(path));
  expect(others.toSorted()).toEqual(['LICENSE', 'README.md', 'package.json']);
  const installed = await readdir(join(client.folder, 'node_modules'));
  expect(installed.filter((name) => !name.startsWith('.'))).toEqual(['headgate']);
  const sources = client.files.filter((path) => path.endsWith('.js'));
  const texts = await Promise.all(
    sources.map((path) => readFile(join(client.folder, 'node_modules/headgate', path), 'utf8')),
  );
  const imported = texts.flatMap((text) =>
    [...text.matchAll(/(?:from|import\() ?['"]([^'"]+)/g)].map(([, name]) => name ?? ''),
  );
  expect(imported.length).toBeGreaterThan(10);
  expect(imported.filter((name) => !/^\.\/[a-z-]+\.js$/.test(name))).toEqual([]);
});

it.each(['nodenext', 'bundler'])('has types for compilers that resolve as %s does', async (how) => {
  const options = {
    strict: true,
    noEmit: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable', 'dom', 'dom.iterable', 'dom.asynciterable'],
    types: [],
    module: how === 'nodenext' ? 'nodenext' : 'esnext',
    moduleResolution: how,
  };
  const config = join(client.folder, `tsconfig.${how}.json`);
  await writeFile(config, JSON.stringify({ compilerOptions: options, files: ['types.ts'] }));
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const { stdout } = await run(process.execPath, [tsc, '-p', config]).catch(
    (error: { stdout: string }) => error,
  );
  expect(stdout).toBe('');
});

it.each(NODES)('works in $name, and ends with its work', async ({ node }) => {
  expect(await inNode(node, 20)).toBe('served 20');
  expect(stage.upstream.stats()).toMatchObject({ total: 20, completed: 20, rejected429: 0 });
  const old = await runToEnd([node, 'main.cjs'], {
    cwd: client.folder,
    env: { PATH: MACHINE_PATH },
  });
  expect(old.out).toBe('function busy\n');
});

it('works in a Worker', async () => {
  expect(await inWorker(20)).toBe('served 20');
  expect(stage.upstream.stats()).toMatchObject({ total: 20, completed: 20, rejected429: 0 });
});

it('holds the limit over all of them together', async () => {
  const nodes = [...NODES, ...NODES].map(({ node }) => inNode(node, 40));
  const all = await Promise.all([...nodes, inWorker(40)]);
  expect(all).toEqual(Array.from({ length: 5 }, () => 'served 40'));
  // The upstream refuses a call above the limit.
  const { peak, ...counted } = stage.upstream.stats();
  expect(counted).toMatchObject({ total: 200, completed: 200, rejected429: 0 });
  expect(peak).toBeGreaterThan(1);
});
