import type { ChildProcess } from 'node:child_process';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { readLines, safeLine } from './log-lines.ts';
import { serviceName } from './workerd-config.ts';

/** Path of workerd's executable. Its package has no types. */
const { default: workerdBinary } = createRequire(import.meta.url)('workerd') as { default: string };

/** How long workerd may outlive its parent process. */
const LOCK_WAIT_MS = 2_000;

/** Maximum size of a compiled configuration, which contains the Worker. It is several times the current size. */
const COMPILED_BYTES_MAX = 64 * 1_048_576;

export interface WorkerdOptions {
  /** Folder of the configuration file `workerd.capnp` and the objects' databases. */
  readonly dataDir: string;
  readonly config: string;
  /** A placeholder in the configuration file for a secret of the same length. @default none */
  readonly hidden?: { readonly written: string; readonly meant: string };
  readonly workers: number;
  readonly env: NodeJS.ProcessEnv;
  /** Opens the inspector, for memory measurements. @default false */
  readonly inspector?: boolean;
  /** Receives every line that workerd prints, without possible secrets. */
  readonly onLog: (line: string) => void;
  /** Kills workerd if the signal is aborted before it listens. */
  readonly givenUp?: AbortSignal;
}

export interface WorkerdProcess {
  readonly pid: number;
  /** Ports of its Worker services on 127.0.0.1. */
  readonly ports: readonly number[];
  /** Port of its inspector on 127.0.0.1. null if it is not open. */
  readonly inspectorPort: number | null;
  /** Resolves with a sentence about the reason when the process has ended. */
  readonly ended: Promise<string>;
  /** Sends SIGTERM, and SIGKILL after `waitMs`. */
  terminate(waitMs: number): Promise<void>;
  kill9(): Promise<void>;
}

/**
 * Whether a process is a workerd on this data folder. After a restart of the machine, or in a new container, another
 * program may have its process id.
 */
async function runsOn(pid: number, dataDir: string): Promise<boolean> {
  try {
    process.kill(pid, 0);
    if (process.platform === 'win32') return true;
    const command =
      process.platform === 'linux'
        ? await readFile(`/proc/${pid}/cmdline`, 'utf8')
        : (await promisify(execFile)('ps', ['-o', 'command=', '-p', String(pid)])).stdout;
    return command.includes(join(dataDir, sep));
  } catch {
    return false;
  }
}

/** Waits for the end of a workerd whose parent process was killed. */
async function claim(dataDir: string): Promise<string> {
  const path = join(dataDir, 'workerd.pid');
  const owner = Number(await readFile(path, 'utf8').catch(() => '0'));
  const deadline = performance.now() + LOCK_WAIT_MS;
  while (owner > 0 && (await runsOn(owner, dataDir))) {
    if (performance.now() > deadline) {
      throw new Error(
        `Another workerd (process ${owner}) uses ${dataDir}. Stop it, or choose another folder with --data.`,
      );
    }
    await delay(20);
  }
  return path;
}

/**
 * Kills workerd if this process is killed (kill -9). An orphaned workerd would keep upstream calls open for clients
 * whose connections are gone. The watcher waits for the end of a pipe that only this process holds.
 */
function watch(pid: number): () => void {
  if (process.platform === 'win32') return () => undefined;
  const watcher = spawn('/bin/sh', ['-c', 'cat >/dev/null; kill -9 "$0"', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watcher.on('error', () => undefined);
  watcher.unref();
  return () => {
    // The whole process group is ended. Otherwise `cat` would keep the pipe open.
    if (watcher.pid !== undefined && watcher.exitCode === null) process.kill(-watcher.pid);
  };
}

type Ports = Pick<WorkerdProcess, 'ports' | 'inspectorPort'>;

/** Reads the ports that workerd reports on its control pipe. The port of the inspector comes first. */
function readPorts(child: ChildProcess, workers: number): Promise<Ports> {
  return new Promise((resolve) => {
    const byName = new Map<string, number>();
    let inspectorPort: number | null = null;
    readLines(child.stdio[3] as Readable, (line) => {
      const message = JSON.parse(line) as { event: string; socket?: string; port?: number };
      if (message.event === 'listen-inspector') inspectorPort = message.port ?? null;
      if (message.event !== 'listen' || message.socket === undefined) return;
      byName.set(message.socket, message.port ?? 0);
      if (byName.size < workers) return;
      const indexes = Array.from({ length: workers }, (_, index) => index);
      resolve({
        ports: indexes.map((index) => byName.get(serviceName(index)) ?? 0),
        inspectorPort,
      });
    });
  });
}

/**
 * Compiles the configuration file with its modules and inserts the secret. workerd reads the result from a pipe, so
 * that no file ever contains the secret.
 */
async function compiled(
  configPath: string,
  hidden: WorkerdOptions['hidden'],
): Promise<Buffer<ArrayBufferLike>> {
  const { stdout } = await promisify(execFile)(
    workerdBinary,
    ['compile', '--config-only', configPath, 'config'],
    { encoding: 'buffer', maxBuffer: COMPILED_BYTES_MAX },
  );
  if (hidden === undefined) return stdout;
  const [written, meant] = [Buffer.from(hidden.written), Buffer.from(hidden.meant)];
  if (written.length !== meant.length) {
    throw new Error('The secret and its placeholder differ in length.');
  }
  for (let at = stdout.indexOf(written); at >= 0; at = stdout.indexOf(written, at)) {
    at += meant.copy(stdout, at);
  }
  return stdout;
}

/** Starts workerd with a compiled configuration. Its files are private to this user. */
async function spawnWorkerd(
  { dataDir, env, inspector = false }: WorkerdOptions,
  config: Buffer<ArrayBufferLike>,
): Promise<ChildProcess> {
  const objectsDir = join(dataDir, 'objects');
  const inspectorAt = inspector ? ['--inspector-addr=127.0.0.1:0'] : [];
  // No module is imported from the folder. Its name in the process list tells the next start which process uses it.
  const flags = ['--experimental', '--control-fd=3', ...inspectorAt];
  const args = ['serve', ...flags, `-I${objectsDir}`, '--binary', '-'];
  const command =
    process.platform === 'win32'
      ? [workerdBinary, ...args]
      : ['/bin/sh', '-c', 'umask 077; exec "$0" "$@"', workerdBinary, ...args];
  const [program = '', ...rest] = command;
  const child = spawn(program, rest, {
    env,
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    // A Ctrl-C in the terminal must reach only this process, because workerd has calls to finish.
    detached: true,
  });
  await once(child, 'spawn');
  // If workerd ends before it has read the configuration, it logs the reason itself.
  child.stdin?.on('error', () => undefined).end(config);
  return child;
}

/** Starts workerd on a data folder and waits until it listens. */
export async function startWorkerd(options: WorkerdOptions): Promise<WorkerdProcess> {
  const { dataDir, config, workers, onLog, givenUp } = options;
  const configPath = join(dataDir, 'workerd.capnp');
  await mkdir(join(dataDir, 'objects'), { recursive: true, mode: 0o700 });
  const pidPath = await claim(dataDir);
  await writeFile(configPath, config, { mode: 0o600 });
  const child = await spawnWorkerd(options, await compiled(configPath, options.hidden));
  const pid = child.pid ?? 0;
  const unwatch = watch(pid);
  for (const output of [child.stdout, child.stderr]) {
    readLines(output, (line) => onLog(safeLine(line)));
  }
  const ended = once(child, 'exit').then(async ([code, signal]: (number | string | null)[]) => {
    unwatch();
    await rm(pidPath, { force: true });
    return `workerd ended with ${signal ?? `code ${code}`}.`;
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  const written = writeFile(pidPath, String(pid), { mode: 0o600 }).catch(async (error: unknown) => {
    await end('SIGKILL');
    throw error;
  });
  const kill = (): void => void child.kill('SIGKILL');
  givenUp?.addEventListener('abort', kill);
  if (givenUp?.aborted === true) kill();
  const [known] = await Promise.all([Promise.race([readPorts(child, workers), ended]), written]);
  givenUp?.removeEventListener('abort', kill);
  if (typeof known === 'string') throw new Error(known);
  return {
    pid,
    ...known,
    ended,
    kill9: () => end('SIGKILL'),
    async terminate(waitMs) {
      const timer = setTimeout(() => child.kill('SIGKILL'), waitMs);
      await end('SIGTERM');
      clearTimeout(timer);
    },
  };
}
