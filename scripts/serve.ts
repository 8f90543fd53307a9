import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ConfigRefused } from './serve/admin-client.ts';
import { BODY_MEMORY_MIB, readBodyMemory } from './serve/body-memory.ts';
import { fewOpenFiles } from './serve/open-files.ts';
import type { Serve } from './serve/start-serve.ts';
import { startServe } from './serve/start-serve.ts';

const USAGE = `Usage: npm run serve -- [options]

  --port P             port to listen on (default 8787)
  --host H             address to listen on (default 127.0.0.1)
  --data DIR           where configuration and state are kept (default .headgate)
  --config FILE        JSON or YAML, imported at the first start only
  --drain-s S          how long calls in flight may take to end at SIGTERM (default 30)
  --body-memory-mib M  how much the bodies of calls may hold together (default ${BODY_MEMORY_MIB})

Environment: ADMIN_TOKEN opens the admin routes, METRICS_TOKEN opens /metrics; UPSTREAM_* are the providers'
keys, WEBHOOK_* sign warnings; ACCESS_TEAM_DOMAIN, ACCESS_AUD and ACCESS_ROLE let Cloudflare Access in.
JURISDICTION has the values of partitions hashed; DIRECTORY_LOCATION means nothing where there is one place.`;

interface Arguments {
  readonly port: number;
  readonly host: string;
  readonly dataDir: string;
  readonly configFile: string | undefined;
  readonly drainMs: number;
  readonly bodyMemoryMib: number;
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}

function readArguments(): Arguments {
  try {
    const { values } = parseArgs({
      options: {
        port: { type: 'string', default: '8787' },
        host: { type: 'string', default: '127.0.0.1' },
        data: { type: 'string', default: '.headgate' },
        config: { type: 'string' },
        'drain-s': { type: 'string', default: '30' },
        'body-memory-mib': { type: 'string', default: String(BODY_MEMORY_MIB) },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      console.log(USAGE);
      process.exit(0);
    }
    const port = Number(values.port);
    const drainMs = Number(values['drain-s']) * 1_000;
    if (!Number.isInteger(port) || port < 0 || port > 65_535) {
      throw new TypeError(`--port ${values.port}: expected 0 to 65535.`);
    }
    if (!(drainMs >= 0)) throw new TypeError(`--drain-s ${values['drain-s']}: expected seconds.`);
    if (values.config !== undefined && !existsSync(values.config)) {
      throw new TypeError(`--config ${values.config}: there is no such file.`);
    }
    return {
      port,
      host: values.host,
      dataDir: values.data,
      configFile: values.config,
      drainMs,
      bodyMemoryMib: readBodyMemory(values['body-memory-mib']),
    };
  } catch (error) {
    return fail(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  }
}

async function describe(serve: Serve, { dataDir, configFile, host }: Arguments): Promise<void> {
  console.log(`Headgate listens on ${serve.url}, its data is in ${resolve(dataDir)}.`);
  if (configFile !== undefined) {
    console.log(
      serve.imported
        ? `The configuration was imported from ${configFile}.`
        : `${configFile} was not imported: there is a configuration already, and the admin routes change it.`,
    );
  }
  if (!process.env['ADMIN_TOKEN']) {
    console.log('ADMIN_TOKEN is not set, so the admin routes are closed.');
  }
  if (host !== '127.0.0.1' && host !== 'localhost') {
    console.log('Reached from other machines, it wants TLS in front of it.');
  }
  const files = await fewOpenFiles();
  if (files !== null) console.log(files);
}

async function main(): Promise<void> {
  const args = readArguments();
  let stopping = false;
  const serve = await startServe({
    port: args.port,
    host: args.host,
    dataDir: args.dataDir,
    bodyMemoryMib: args.bodyMemoryMib,
    ...(args.configFile !== undefined && { configFile: args.configFile }),
    onLog: (line) => console.log(line),
  });
  const stop = (signal: NodeJS.Signals): void => {
    // A second signal is somebody who does not want to wait.
    if (stopping) process.exit(1);
    stopping = true;
    console.log(`${signal}: waiting for the calls in flight, ${args.drainMs / 1_000} s at most.`);
    serve.stop({ drainMs: args.drainMs }).then(
      () => process.exit(0),
      (error: unknown) => fail(String(error)),
    );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  await describe(serve, args);
}

try {
  await main();
} catch (error) {
  if (error instanceof ConfigRefused) fail(`The configuration was refused: ${error.message}`);
  fail(error instanceof Error ? error.message : String(error));
}
