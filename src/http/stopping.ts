import type { Context } from 'hono';
import type { Stopping } from '../contract/rpc/forwarded.ts';
import { directoryOf, type Env } from '../env.ts';
import { openSockets } from '../call/answer/open-sockets.ts';
import { askPools, readDirectory } from '../overview/pools.ts';

/**
 * Closes WebSockets, and makes all pools in use flush pending writes, because the process is about to end. Only `serve`
 * can request it.
 */
export async function stopping({ env, req }: Context<{ Bindings: Env }>): Promise<Response> {
  const { isStopping, mayFinish }: Partial<Stopping> = { ...(req.raw.cf as object | undefined) };
  if (isStopping !== true) return new Response(null, { status: 404 });
  if (mayFinish === true) {
    openSockets.stopAtRest();
    return new Response(null, { status: 204 });
  }
  // They would otherwise break without a reason.
  openSockets.stop();
  const [directory, known] = await Promise.all([readDirectory(env), directoryOf(env).presence()]);
  const inUse = known.filter(({ said }) => said === null);
  await askPools(env, directory.config, inUse, (pool) => pool.flush());
  return new Response(null, { status: 204 });
}
