import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, untilListening } from './haproxy.ts';
import type { Subject } from './subjects.ts';
import { chatRequest } from './wire.ts';

const PATH = '/v1/chat/completions';

function versionOf(program: string): string {
  const file = join(program, '../../package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** Starts Portkey's gateway. It has no limits: it only passes calls on, to one upstream, or to several in turn by weight. */
export async function startPortkey(
  program: string,
  upstreamUrl: string,
  ...others: readonly string[]
): Promise<Subject> {
  const name = `Portkey ${versionOf(program)}`;
  const port = await freePort();
  // The check of its own for upstreams on this machine.
  const env = { ...process.env, TRUSTED_CUSTOM_HOSTS: new URL(upstreamUrl).hostname };
  const args = [program, `--port=${port}`, '--headless'];
  const child = spawn(process.execPath, args, { stdio: 'ignore', env });
  const exited = once(child, 'exit');
  await untilListening(port);
  const targets = [upstreamUrl, ...others].map((url, index) => ({
    provider: 'openai',
    custom_host: `${url}/v1`,
    api_key: `sk-${index}`,
    weight: 1,
  }));
  const several = JSON.stringify({ strategy: { mode: 'loadbalance' }, targets });
  const headers =
    others.length > 0
      ? [`x-portkey-config: ${several}`]
      : ['x-portkey-provider: openai', `x-portkey-custom-host: ${upstreamUrl}/v1`];
  return {
    name,
    pids: [child.pid ?? 0],
    port,
    path: PATH,
    request: (chunks, everyMs) => chatRequest(PATH, 'gpt-4o-mini', chunks, { everyMs, headers }),
    async stop() {
      child.kill();
      await exited;
    },
  };
}
