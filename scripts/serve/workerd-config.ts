import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './build.ts';

export interface WorkerdConfigInput {
  /** Path of the built module, relative to the configuration file. */
  readonly module: string;
  /** Absolute path of the folder with the objects' databases. */
  readonly objectsDir: string;
  /** Number of Worker services. Each has a socket, and all use the objects of the first. */
  readonly workers: number;
  readonly bootId: string;
  readonly bodyMemoryMib: number;
  /** Served host names, separated by commas. null means all. */
  readonly allowedHosts: string | null;
  /**
   * Header with the `cf` object of a request, from which the Worker reads the client's address. `CF_HEADER` if it is
   * secret.
   */
  readonly cfHeader: string;
  /** Absolute path of the dashboard's files. null if they were not built. */
  readonly dashboardDir: string | null;
  /** Environment variables that become bindings. Their values are never written to the file. */
  readonly fromEnvironment: readonly string[];
  readonly compatibility: Compatibility;
}

interface Compatibility {
  readonly date: string;
  readonly flags: readonly string[];
}

/**
 * Placeholder in the file for the secret header of the forwarder. The real name has the same length, and workerd reads
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

/** Reads the runtime's date and flags from wrangler.toml, the only place that defines them. */
export async function readCompatibility(): Promise<Compatibility> {
  const toml = await readFile(join(ROOT, 'wrangler.toml'), 'utf8');
  const date = /^compatibility_date\s*=\s*"([^"]+)"/m.exec(toml)?.[1];
  if (date === undefined) throw new Error('wrangler.toml has no compatibility_date.');
  const list = /^compatibility_flags\s*=\s*\[([^\]]*)\]/m.exec(toml)?.[1] ?? '';
  return { date, flags: [...list.matchAll(/"([^"]+)"/g)].map((match) => match[1] ?? '') };
}

/**
 * Without this flag, if the wall clock is set back, time stops in an object and no timer fires until the clock has
 * caught up. The flag is experimental, so workerd is started with `--experimental`.
 */
const TIMER_FLAGS = ['precise_timers'];

/** Formats a Cap'n Proto string. For characters that occur in paths, JSON's escapes are valid in Cap'n Proto. */
const quote = (text: string): string => JSON.stringify(text);

/** Name of a socket and of its Worker service. */
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

/** Upstreams may have public and private addresses. */
const NETWORK = 'network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))';

/** Returns the configuration of a plain workerd that runs the Worker, as Cap'n Proto text. */
export function workerdConfig(input: WorkerdConfigInput): string {
  const indexes = Array.from({ length: input.workers }, (_, index) => index);
  const services = indexes.map(
    (index) => `(name = ${quote(serviceName(index))}, worker = .${serviceName(index)})`,
  );
  const { dashboardDir } = input;
  if (dashboardDir !== null) {
    services.push(`(name = "dashboard", disk = (path = ${quote(dashboardDir)}))`);
  }
  // With port 0, workerd reports the assigned port on its control pipe.
  const sockets = indexes.map(
    (index) =>
      `(name = ${quote(serviceName(index))}, address = "127.0.0.1:0", http = (cfBlobHeader = ${quote(input.cfHeader)}), service = ${quote(serviceName(index))})`,
  );
  return `# Generated at every start. Changes to this file are lost.
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
