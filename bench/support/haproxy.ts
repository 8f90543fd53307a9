import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Subject } from './subjects.ts';
import { chatRequest } from './wire.ts';

const PATH = '/v1/chat/completions';

/** Reads the version of the HAProxy that is installed; null: there is none. */
export function haproxyVersion(): string | null {
  const { status, stdout } = spawnSync('haproxy', ['-v'], { encoding: 'utf8' });
  return status === 0 ? (/version (\S+)/.exec(stdout)?.[1] ?? 'unknown') : null;
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Waits until somebody listens there. */
export async function untilListening(port: number): Promise<void> {
  for (let left = 200; left > 0; left -= 1) {
    const socket = connect(port, '127.0.0.1');
    const isUp = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'close').then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (isUp) return;
    await delay(50);
  }
  throw new Error(`Nobody listens on port ${port}.`);
}

const configOf = (port: number, upstreamUrl: string, maxInFlight: number): string => `global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout connect 10s
  timeout client 600s
  timeout server 600s
  timeout queue 600s
frontend callers
  bind 127.0.0.1:${port}
  default_backend upstream
backend upstream
  server one ${new URL(upstreamUrl).host} maxconn ${maxInFlight}
`;

/** Starts HAProxy with one thread, and a queue before its upstream. */
export async function startHaproxy(
  dir: string,
  upstreamUrl: string,
  maxInFlight: number,
): Promise<Subject> {
  const name = `HAProxy ${haproxyVersion()}, maxconn ${maxInFlight}`;
  const port = await freePort();
  const file = join(dir, `haproxy-${port}.cfg`);
  await writeFile(file, configOf(port, upstreamUrl, maxInFlight));
  const child = spawn('haproxy', ['-q', '-db', '-f', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exited = once(child, 'exit');
  await untilListening(port);
  return {
    name,
    pids: [child.pid ?? 0],
    port,
    path: PATH,
    request: (chunks, everyMs) => chatRequest(PATH, 'gpt-4o-mini', chunks, { everyMs }),
    async stop() {
      child.kill();
      await exited;
    },
  };
}
