import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Peers } from '../scenarios/scenario.ts';
import { haproxyVersion } from './haproxy.ts';

const PROGRAM = 'node_modules/@portkey-ai/gateway/build/start-server.js';

/** Finds Portkey's gateway: where PORTKEY says, else installed globally, else where npx keeps what it has run. */
function findPortkey(): string | null {
  const named = process.env['PORTKEY'];
  if (named !== undefined) {
    const program = join(named, PROGRAM);
    if (existsSync(program)) return program;
    throw new Error(`PORTKEY=${named}: there is no ${PROGRAM} in it.`);
  }
  const globalRoot = spawnSync('npm', ['root', '--global'], { encoding: 'utf8' }).stdout?.trim();
  const programs = [
    join(globalRoot, '..', PROGRAM),
    ...globSync(join(homedir(), '.npm/_npx/*', PROGRAM)),
  ];
  return programs.find(existsSync) ?? null;
}

/** Finds the peers that Headgate is compared to, if that is wanted. Of one that is not installed it says so. */
export function findPeers(areWanted: boolean): Peers {
  if (!areWanted) return { haproxy: false, portkey: null };
  const version = haproxyVersion();
  const portkey = findPortkey();
  if (version === null) console.log('\nHAProxy is not installed: skipped.');
  if (portkey === null) console.log('\nPortkey is not installed: skipped.');
  return { haproxy: version !== null, portkey };
}
