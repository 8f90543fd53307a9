import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

/** Reckons how many clients a process takes whose limits are these. */
function clientsWith(files: number): number {
  const command = `ulimit -n ${files} && exec "$0" "$@"`;
  const script =
    "import('./scripts/serve/open-files.ts').then(async (module) => console.log(await module.clientsMax()))";
  const args = ['-c', command, process.execPath, '--input-type=module', '-e', script];
  return Number(spawnSync('/bin/sh', args, { encoding: 'utf8' }).stdout);
}

it.each([
  // 64 of our own, and three for each client.
  [1_024, 320],
  [364, 100],
  // Some are served, however few there are.
  [100, 21],
])('of %i files that may be open there is room for %i clients', (files, clients) => {
  expect(clientsWith(files)).toBe(clients);
});
