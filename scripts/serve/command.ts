import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';
import { plural } from '../../src/core/words/figures.ts';
import { cleanSecret, secretFault } from '../../src/runtime/secrets.ts';
import { ConfigRefused } from './admin-client.ts';
import { readFolderToken, signInAddress } from './admin-token.ts';
import { allowedHosts, readAllowedHost } from './allowed-hosts.ts';
import { BODY_MEMORY_MIB, readBodyMemory } from './body-memory.ts';
import { ensureBuilt } from './build.ts';
import { proxyList } from './client-connections.ts';
import { jsonLine, textLine, type LogLine } from './log-lines.ts';
import { fewOpenFiles } from './open-files.ts';
import type { Serve } from './start-serve.ts';
import { startServe } from './start-serve.ts';

const usageOf = (program: string): string => `Usage: ${program} [options]

  --port P             port to listen on (default 8787)
  --host H             address to listen on (default 127.0.0.1)
  --allow-host NAME    additional host name to serve on a loopback address; repeatable
  --data DIR           folder of the configuration and state (default .headgate)
  --config FILE        JSON or YAML configuration, imported only if there is none yet
  --drain-s S          seconds that calls in flight may take to finish after SIGTERM (default 30)
  --trusted-proxy A    address of a reverse proxy, or a range such as 10.0.0.0/8; repeatable. Each other address may
                       hold a tenth of all connections. Loopback always counts as a proxy
  --body-memory-mib M  memory for the bodies of all calls, in MiB (default ${BODY_MEMORY_MIB})
  --show-token         print the admin token of the data folder and exit

Environment:
  ADMIN_TOKEN          token for the admin routes and the dashboard; without it, the first start generates a token,
                       stores it in the data folder and prints it once
  METRICS_TOKEN        token for /metrics
  UPSTREAM_*           provider keys
  WEBHOOK_*            signing secrets of webhooks
  ACCESS_TEAM_DOMAIN, ACCESS_AUD, ACCESS_ROLE
                       sign-in with Cloudflare Access
  JURISDICTION         stores hashes instead of the values of partitions
  DIRECTORY_LOCATION   has no effect here, because a self-hosted Headgate has one location`;

interface ServeArguments {
  readonly port: number;
  readonly host: string;
  readonly allowHosts: readonly string[];
  readonly dataDir: string;
  readonly configFile: string | undefined;
  readonly drainMs: number;
  readonly bodyMemoryMib: number;
  readonly trustedProxies: readonly string[];
  readonly showsToken: boolean;
}

/** Writes a log line: as text on a terminal, otherwise as JSON. */
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

export const SERVE_OPTIONS = {
  port: { type: 'string', default: '8787' },
  host: { type: 'string', default: '127.0.0.1' },
  'allow-host': { type: 'string', multiple: true, default: [] },
  data: { type: 'string', default: '.headgate' },
  config: { type: 'string' },
  'drain-s': { type: 'string', default: '30' },
  'trusted-proxy': { type: 'string', multiple: true, default: [] },
  'body-memory-mib': { type: 'string', default: String(BODY_MEMORY_MIB) },
  'show-token': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} satisfies ParseArgsOptionsConfig;

function readArguments(args: readonly string[], program: string): ServeArguments {
  try {
    const { values } = parseArgs({ args: [...args], options: SERVE_OPTIONS });
    if (values.help) {
      console.log(usageOf(program));
      process.exit(0);
    }
    const port = Number(values.port);
    const drainMs = Number(values['drain-s']) * 1_000;
    if (!Number.isInteger(port) || port < 0 || port > 65_535) {
      throw new TypeError(`--port ${values.port}: expected a port from 0 to 65535.`);
    }
    if (!(drainMs >= 0)) {
      throw new TypeError(
        `--drain-s ${values['drain-s']}: expected a number of seconds, 0 or more.`,
      );
    }
    const trustedProxies = values['trusted-proxy'];
    proxyList(trustedProxies);
    if (values.config !== undefined && !existsSync(values.config)) {
      throw new TypeError(`--config ${values.config}: the file does not exist.`);
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
      showsToken: values['show-token'],
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
  'upstream with their own provider keys, and upstreams that need no key without one. They use slots and places in the ' +
  'queue. Create gateway keys (headgate keys create ID), or listen on 127.0.0.1 behind a proxy that authenticates clients.';

/** Maximum number of logged warnings about an imported configuration. */
const WARNINGS_SHOWN_MAX = 50;

/** Returns the shell command that prints the admin token of a data folder. */
function showToken(program: string, dataDir: string): string {
  const isPlain = /^[\w./-]+$/.test(dataDir);
  const quoted = isPlain ? dataDir : `'${dataDir.replaceAll("'", `'\\''`)}'`;
  return `${program} --show-token${dataDir === SERVE_OPTIONS.data.default ? '' : ` --data ${quoted}`}`;
}

/**
 * Logs how to sign in with the token of the data folder. The token itself is logged only at the start that generates
 * it.
 */
function describeToken({ folderToken: token, url }: Serve, program: string, dataDir: string): void {
  if (token === null) return;
  const again = showToken(program, dataDir);
  say(
    token.isNew
      ? `Sign in to the dashboard: ${signInAddress(url, token.value)} (shown only once; to show the token again: ${again})`
      : `The admin token is stored in ${resolve(dataDir)}. To show it: ${again}`,
  );
}

/** Prints the admin token of a data folder. Standard output contains only the token, for scripts. */
async function printToken({ dataDir, host, port }: ServeArguments): Promise<never> {
  const token = await readFolderToken(dataDir);
  if (token === null) {
    const where = `There is no admin token in ${resolve(dataDir)}.`;
    console.error(
      `${where} The first start without ADMIN_TOKEN generates one. Name the folder with --data, or use the ADMIN_TOKEN of the running serve.`,
    );
    return process.exit(1);
  }
  if (cleanSecret(process.env['ADMIN_TOKEN']).fault !== 'is not set') {
    console.error(
      'ADMIN_TOKEN is set in this environment. A serve that is started with it uses that token instead.',
    );
  }
  console.log(token);
  const shown = host.includes(':') ? `[${host}]` : host;
  console.error(`Sign in to the dashboard: ${signInAddress(`http://${shown}:${port}`, token)}`);
  return process.exit(0);
}

async function describe(serve: Serve, args: ServeArguments, program: string): Promise<void> {
  const { dataDir, configFile, host } = args;
  say(`Headgate listens on ${serve.url}, with its data in ${resolve(dataDir)}.`);
  if (configFile !== undefined) {
    say(
      serve.imported
        ? `Imported the configuration from ${configFile}.`
        : `${configFile} was not imported because a configuration exists. Change it with headgate apply or the dashboard.`,
    );
    for (const warning of serve.warnings.slice(0, WARNINGS_SHOWN_MAX)) {
      log('warn', 'serve', warning);
    }
    const more = serve.warnings.length - WARNINGS_SHOWN_MAX;
    if (more > 0) log('warn', 'serve', `The configuration has ${plural(more, 'more warning')}.`);
  }
  const fault = secretFault(process.env, 'ADMIN_TOKEN');
  if (fault !== null && serve.folderToken === null) {
    say(`ADMIN_TOKEN ${fault}, so the admin routes are disabled.`);
  }
  describeToken(serve, program, dataDir);
  const isLocal = (await allowedHosts(host, [])) !== null;
  if (!isLocal) {
    say('Headgate accepts connections from other machines. Put a proxy with TLS in front of it.');
    if (!serve.hasGatewayKeys) log('warn', 'serve', openToAll(serve.url));
  }
  const files = await fewOpenFiles();
  if (files !== null) log('warn', 'serve', files);
}

async function start(args: ServeArguments, program: string): Promise<void> {
  let stopping = false;
  // The build precedes the umask, because it contains no secrets and other users of the clone may run it.
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
    keepsAdminToken: true,
    ...(args.configFile !== undefined && { configFile: args.configFile }),
    onLog: (line) => log('warn', 'workerd', line),
  });
  const stop = (signal: NodeJS.Signals): void => {
    // A second signal exits immediately.
    if (stopping) process.exit(1);
    stopping = true;
    say(`${signal}: waiting for calls in flight for at most ${args.drainMs / 1_000} s.`);
    serve.stop({ drainMs: args.drainMs }).then(
      () => process.exit(0),
      (error: unknown) => fail(String(error)),
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  await describe(serve, args, program);
}

/** Runs the command until a signal ends it. `program` is the command by which it was called, for the help. */
export async function runServe(args: readonly string[], program: string): Promise<void> {
  try {
    const given = readArguments(args, program);
    if (given.showsToken) await printToken(given);
    await start(given, program);
  } catch (error) {
    if (error instanceof ConfigRefused) fail(`The configuration was rejected: ${error.message}`);
    fail(error instanceof Error ? error.message : String(error));
  }
}
