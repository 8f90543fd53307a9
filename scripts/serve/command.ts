import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';
import { secretFault } from '../../src/runtime/secrets.ts';
import { ConfigRefused } from './admin-client.ts';
import { allowedHosts, readAllowedHost } from './allowed-hosts.ts';
import { BODY_MEMORY_MIB, readBodyMemory } from './body-memory.ts';
import { ensureBuilt } from './build.ts';
import { proxyList } from './client-places.ts';
import { jsonLine, textLine, type LogLine } from './log-lines.ts';
import { fewOpenFiles } from './open-files.ts';
import type { Serve } from './start-serve.ts';
import { startServe } from './start-serve.ts';

const usageOf = (program: string): string => `Usage: ${program} [options]

  --port P             port to listen on (default 8787)
  --host H             address to listen on (default 127.0.0.1)
  --allow-host NAME    also serve this host name while it listens on a loopback address; repeatable
  --data DIR           where configuration and state are kept (default .headgate)
  --config FILE        JSON or YAML, imported at the first start only
  --drain-s S          how long calls in flight may take to end at SIGTERM (default 30)
  --trusted-proxy A    address of a reverse proxy, or a range as in 10.0.0.0/8; may be repeated. Others may each
                       hold a tenth of all connections. Loopback always counts as a proxy
  --body-memory-mib M  how much the bodies of calls may hold together (default ${BODY_MEMORY_MIB})

Environment: ADMIN_TOKEN opens the admin routes, METRICS_TOKEN opens /metrics; UPSTREAM_* are the providers'
keys, WEBHOOK_* sign warnings; ACCESS_TEAM_DOMAIN, ACCESS_AUD and ACCESS_ROLE let Cloudflare Access in.
JURISDICTION has the values of partitions hashed; DIRECTORY_LOCATION means nothing where there is one place.`;

interface Arguments {
  readonly port: number;
  readonly host: string;
  readonly allowHosts: readonly string[];
  readonly dataDir: string;
  readonly configFile: string | undefined;
  readonly drainMs: number;
  readonly bodyMemoryMib: number;
  readonly trustedProxies: readonly string[];
}

/** Writes to the log: for people before a terminal, else as JSON, a line each. */
function log(level: LogLine['level'], event: string, message: string): void {
  const line = { at: new Date(), level, event, message };
  const text = process.stdout.isTTY ? textLine(line) : jsonLine(line);
  if (level === 'error') console.error(text);
  else console.log(text);
}

const say = (message: string): void => log('info', 'serve', message);

function fail(message: string): never {
  log('error', 'serve', message);
  process.exit(1);
}

/** Options of `headgate serve`, as `parseArgs` takes them. */
export const SERVE_OPTIONS = {
  port: { type: 'string', default: '8787' },
  host: { type: 'string', default: '127.0.0.1' },
  'allow-host': { type: 'string', multiple: true, default: [] },
  data: { type: 'string', default: '.headgate' },
  config: { type: 'string' },
  'drain-s': { type: 'string', default: '30' },
  'trusted-proxy': { type: 'string', multiple: true, default: [] },
  'body-memory-mib': { type: 'string', default: String(BODY_MEMORY_MIB) },
  help: { type: 'boolean', default: false },
} satisfies ParseArgsOptionsConfig;

function readArguments(args: readonly string[], program: string): Arguments {
  try {
    const { values } = parseArgs({ args: [...args], options: SERVE_OPTIONS });
    if (values.help) {
      console.log(usageOf(program));
      process.exit(0);
    }
    const port = Number(values.port);
    const drainMs = Number(values['drain-s']) * 1_000;
    if (!Number.isInteger(port) || port < 0 || port > 65_535) {
      throw new TypeError(`--port ${values.port}: expected 0 to 65535.`);
    }
    if (!(drainMs >= 0)) throw new TypeError(`--drain-s ${values['drain-s']}: expected seconds.`);
    const trustedProxies = values['trusted-proxy'];
    proxyList(trustedProxies);
    if (values.config !== undefined && !existsSync(values.config)) {
      throw new TypeError(`--config ${values.config}: there is no such file.`);
    }
    return {
      port,
      host: values.host,
      allowHosts: values['allow-host'].map(readAllowedHost),
      dataDir: values.data,
      configFile: values.config,
      drainMs,
      bodyMemoryMib: readBodyMemory(values['body-memory-mib']),
      trustedProxies,
    };
  } catch (error) {
    console.error(
      `${error instanceof Error ? error.message : String(error)}\n\n${usageOf(program)}`,
    );
    return process.exit(1);
  }
}

const openToAll = (url: string): string =>
  `No gateway key is configured, so every client that can reach ${url} may call. Such clients can call every ` +
  'upstream with their own provider keys, and upstreams that need no key without one, and they use slots and places in ' +
  'the queue. Create gateway keys (headgate keys create ID), or listen on 127.0.0.1 and let a proxy decide who may call.';

/** Maximum number of logged warnings about an imported configuration. */
const WARNINGS_SHOWN_MAX = 50;

async function describe(serve: Serve, { dataDir, configFile, host }: Arguments): Promise<void> {
  say(`Headgate listens on ${serve.url}, its data is in ${resolve(dataDir)}.`);
  if (configFile !== undefined) {
    say(
      serve.imported
        ? `The configuration was imported from ${configFile}.`
        : `${configFile} was not imported: there is a configuration already, and the admin routes change it.`,
    );
    for (const warning of serve.warnings.slice(0, WARNINGS_SHOWN_MAX)) {
      log('warn', 'serve', warning);
    }
    const more = serve.warnings.length - WARNINGS_SHOWN_MAX;
    if (more > 0) log('warn', 'serve', `The configuration has ${more} more warnings.`);
  }
  const fault = secretFault(process.env, 'ADMIN_TOKEN');
  if (fault !== null) {
    say(`ADMIN_TOKEN ${fault}, so the admin routes are closed.`);
  }
  const isLocal = (await allowedHosts(host, [])) !== null;
  if (!isLocal) {
    say('Reached from other machines, it wants TLS in front of it.');
    if (!serve.hasGatewayKeys) log('warn', 'serve', openToAll(serve.url));
  }
  const files = await fewOpenFiles();
  if (files !== null) log('warn', 'serve', files);
}

async function start(args: Arguments): Promise<void> {
  let stopping = false;
  // Before the umask: the build holds no secret, and other users of a clone may run it.
  const module = await ensureBuilt();
  process.umask(0o077);
  const serve = await startServe({
    module,
    port: args.port,
    host: args.host,
    allowHosts: args.allowHosts,
    dataDir: args.dataDir,
    bodyMemoryMib: args.bodyMemoryMib,
    trustedProxies: args.trustedProxies,
    ...(args.configFile !== undefined && { configFile: args.configFile }),
    onLog: (line) => log('warn', 'workerd', line),
  });
  const stop = (signal: NodeJS.Signals): void => {
    // A second signal is somebody who does not want to wait.
    if (stopping) process.exit(1);
    stopping = true;
    say(`${signal}: waiting for the calls in flight, ${args.drainMs / 1_000} s at most.`);
    serve.stop({ drainMs: args.drainMs }).then(
      () => process.exit(0),
      (error: unknown) => fail(String(error)),
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  await describe(serve, args);
}

/** Runs the command until a signal ends it. `program` is how it was called, for its help. */
export async function runServe(args: readonly string[], program: string): Promise<void> {
  try {
    await start(readArguments(args, program));
  } catch (error) {
    if (error instanceof ConfigRefused) fail(`The configuration was refused: ${error.message}`);
    fail(error instanceof Error ? error.message : String(error));
  }
}
