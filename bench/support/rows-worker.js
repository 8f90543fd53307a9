import { holdLeases, tryOnce } from './row-holders.js';
import { countsSoFar, countWrites } from './row-counter.js';

// A built Headgate whose group objects count what they write. Beside its own paths it answers those of the
// benchmark, under `/__rows`.

/** What is done at each path below `/__rows`, with the pool that it is about. */
const ANSWERS = {
  '': () => Response.json(countsSoFar()),
  '/hold': (poolNow, { group, leases }, ctx) => holdLeases(poolNow, group, leases, ctx),
  '/try': async (poolNow, { group }) => Response.json(await tryOnce(poolNow(), group)),
  '/status': async (poolNow) => Response.json(await poolNow().status()),
  // The call dies with the instance.
  '/reset': async (poolNow) => {
    await poolNow()
      .endInstance()
      .catch(() => {});
    return Response.json(true);
  },
};

async function answer({ pathname, searchParams }, env, ctx) {
  const group = searchParams.get('group');
  // A stub does not outlive the instance that it leads to.
  const poolNow = () => env.GROUPS.getByName(group);
  const asked = { group, leases: Number(searchParams.get('leases')) };
  try {
    return await ANSWERS[pathname.slice('/__rows'.length)](poolNow, asked, ctx);
  } catch (error) {
    return new Response(String(error), { status: 503 });
  }
}

/** Makes a Worker like `built`, the module of a Headgate, that counts. */
export function counting(built) {
  class GroupObject extends built.GroupObject {
    #end;

    constructor(ctx, env) {
      countWrites(ctx.storage, ctx.id.name ?? '');
      // As on Cloudflare, where rows of another process may have a living holder.
      const { BOOT_ID: _, ...others } = env;
      super(ctx, others);
      this.#end = () => ctx.abort('ended by the benchmark');
    }

    /** Ends the instance; the next call makes another one. */
    async endInstance() {
      this.#end();
    }
  }
  const worker = {
    ...built.default,
    fetch(request, env, ctx) {
      const url = new URL(request.url);
      if (url.pathname.startsWith('/__rows')) return answer(url, env, ctx);
      return built.default.fetch(request, env, ctx);
    },
  };
  return { GroupObject, worker };
}
