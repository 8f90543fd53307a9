import { askPools, readDirectory } from '../overview/pools.ts';
import { note } from './change.ts';
import type { AdminApp } from './context.ts';
import { requirePools, unreachable } from './pools.ts';
import { serve } from './serve.ts';

export function addRelearnRoutes(app: AdminApp): void {
  serve(app, 'relearnGroup', async ({ context, params: { name } }) => {
    const directory = await readDirectory(context.env);
    const pools = requirePools(directory, name);
    const asked = await askPools(context.env, directory.config, pools, (pool) => pool.relearn());
    await note(context, `group ${name}: relearn`);
    const missing = unreachable(asked);
    const body = { group: name, pools: asked.length - missing.length, unreachable: missing };
    return { status: 200, body };
  });
}
