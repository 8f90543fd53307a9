import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './build.ts';

/** Facts that the generated configuration of workerd depends on. */
export interface WorkerdConfigInput {
  /** Path of the built module, relative to the configuration file. */
  readonly module: string;
  /** Absolute path of the folder with the objects' databases. */
  readonly objectsDir: string;
  /** Worker services, a socket each, all bound to the objects of the first. */
  readonly workers: number;
  readonly bootId: string;
  /** How many MiB the bodies of calls may hold together. */
  readonly bodyMemoryMib: number;
  /** Served hosts, separated by commas; null: all. */
  readonly allowedHosts: string | null;
  /** Header with the `cf` object of a request, from which the Worker reads the caller's address. `CF_HEADER` for a secret one. */
  readonly cfHeader: string;
  /** Absolute path of the dashboard's files; null: they were never built. */
  readonly dashboardDir: string | null;
  /** Environment variables that become bindings. Their values never stand in the file. */
  readonly fromEnvironment: readonly string[];
  readonly compatibility: Compatibility;
}

interface Compatibility {
  readonly date: string;
  readonly flags: readonly string[];
}

/**
 * Stands in the file for the header that only the forwarder may know. Its real name has the same length, and workerd reads
 * it from a pipe.
 */
export const CF_HEADER = 'headgate-cf-the-name-comes-through-a-pipe-000000';

const OBJECTS = [
  { binding: 'GROUPS', className: 'GroupObject' },
  { binding: 'DIRECTORY', className: 'DirectoryObject' },
  { binding: 'FEED', className: 'FeedObject' },
  { binding: 'RUNS', className: 'RunsObject' },
  { binding: 'TRIALS', className: 'TrialsObject' },
];

/** Reads the runtime's date and flags from the one place that states them. */
export async function readCompatibility(): Promise<Compatibility> {
  const toml = await readFile(join(ROOT, 'wrangler.toml'), 'utf8');
  const date = /^compatibility_date\s*=\s*"([^"]+)"/m.exec(toml)?.[1];
  if (date === undefined) throw new Error('wrangler.toml has no compatibility_date.');
  const list = /^compatibility_flags\s*=\s*\[([^\]]*)\]/m.exec(toml)?.[1] ?? '';
  return { date, flags: [...list.matchAll(/"([^"]+)"/g)].map((match) => match[1] ?? '') };
}

/**
 * Without this flag, after the wall clock was set back, time stands still in an object and none of its timers fire until the
 * clock has caught up. The flag is experimental, so workerd is started with `--experimental`.
 */
const TIMER_FLAGS = ['precise_timers'];

/** Writes a Cap'n Proto string. JSON's escapes are a subset of its own for what can stand in a path. */
const quote = (text: string): string => JSON.stringify(text);

/** Names a socket, and the Worker service behind it. */
export const serviceName = (index: number): string => `headgate${index}`;

function bindings(input: WorkerdConfigInput, index: number): string {
  const home = index === 0 ? '' : `, serviceName = ${quote(serviceName(0))}`;
  const list = [
    ...OBJECTS.map(
      ({ binding, className }) =>
        `(name = ${quote(binding)}, durableObjectNamespace = (className = ${quote(className)}${home}))`,
    ),
    ...(input.dashboardDir === null ? [] : [`(name = "ASSETS", service = "dashboard")`]),
    `(name = "UPGRADES", service = "upgrades")`,
    `(name = "BOOT_ID", text = ${quote(input.bootId)})`,
    `(name = "BODY_MEMORY_MIB", text = "${input.bodyMemoryMib}")`,
    `(name = "PRIVATE_UPSTREAMS", text = "allow")`,
    ...(input.allowedHosts === null
      ? []
      : [`(name = "ALLOWED_HOSTS", text = ${quote(input.allowedHosts)})`]),
    ...input.fromEnvironment.map(
      (name) => `(name = ${quote(name)}, fromEnvironment = ${quote(name)})`,
    ),
  ];
  return list.join(',\n    ');
}

function worker(input: WorkerdConfigInput, index: number): string {
  const { date, flags } = input.compatibility;
  const objects = OBJECTS.map(
    ({ className }) =>
      `(className = ${quote(className)}, uniqueKey = ${quote(className)}, enableSql = true)`,
  ).join(', ');
  const storage = `durableObjectNamespaces = [${objects}],
  durableObjectStorage = (localDisk = "objects"),`;
  return `const ${serviceName(index)} :Workerd.Worker = (
  modules = [(name = "index.js", esModule = embed ${quote(input.module)})],
  compatibilityDate = ${quote(date)},
  compatibilityFlags = [${[...flags, ...TIMER_FLAGS].map(quote).join(', ')}],
  ${index === 0 ? storage : ''}
  bindings = [
    ${bindings(input, index)}
  ],
  globalOutbound = "internet"
);`;
}

/** All addresses that an upstream may have. */
const NETWORK = 'network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))';

/** Writes the configuration of a plain workerd that runs the Worker, as Cap'n Proto text. */
export function workerdConfig(input: WorkerdConfigInput): string {
  const indexes = Array.from({ length: input.workers }, (_, index) => index);
  const services = indexes.map(
    (index) => `(name = ${quote(serviceName(index))}, worker = .${serviceName(index)})`,
  );
  const { dashboardDir } = input;
  if (dashboardDir !== null) {
    services.push(`(name = "dashboard", disk = (path = ${quote(dashboardDir)}))`);
  }
  // Port 0: workerd says on its control pipe which one it got.
  const sockets = indexes.map(
    (index) =>
      `(name = ${quote(serviceName(index))}, address = "127.0.0.1:0", http = (cfBlobHeader = ${quote(input.cfHeader)}), service = ${quote(serviceName(index))})`,
  );
  return `# Written at every start; a change here is lost.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    ${services.join(',\n    ')},
    (name = "objects", disk = (path = ${quote(input.objectsDir)}, writable = true)),
    (name = "internet", ${NETWORK}),
    (name = "upgrades", ${NETWORK})
  ],
  sockets = [
    ${sockets.join(',\n    ')}
  ]
);

${indexes.map((index) => worker(input, index)).join('\n\n')}
`;
}
