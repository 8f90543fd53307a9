// A built Headgate on a directory that answers late. It says with each answer what the call had waited for by the time
// at which the upstream was called.

/** What the call that is under way in this isolate has waited for: one at a time. */
let way = newWay();

function newWay() {
  const ended = { pool: 0, directory: 0, copy: 0 };
  return { startedAt: Date.now(), acquires: 0, ended, before: null };
}

/** Counts the calls of a namespace's objects when their answers are there. */
function counted(namespace, kind) {
  const stubOf = (stub) =>
    new Proxy(stub, {
      get(_, method) {
        return (...args) => {
          const { ended } = way;
          if (method === 'acquire') way.acquires += 1;
          const answer = stub[method](...args);
          const count = () => (ended[kind] += 1);
          answer.then(count, count);
          return answer;
        };
      },
    });
  return { getByName: (...args) => stubOf(namespace.getByName(...args)) };
}

const callUpstream = globalThis.fetch;
globalThis.fetch = (...args) => {
  way.before ??= { ...way.ended, acquires: way.acquires, ms: Date.now() - way.startedAt };
  return callUpstream(...args);
};

/** Stands in for Workers KV, which plain workerd does not have: an object of its own. */
function withStore(env, feeds) {
  if (env.BENCH_COPY === 'none') return env;
  const store = feeds.getByName('copy');
  const get = async () => JSON.parse(await store.copy());
  return { ...env, SNAPSHOTS: { get, put: (_, text) => store.keepCopy(text) } };
}

/** Makes a Worker like `built`, the module of a Headgate, that counts. */
export function counting(built) {
  class DirectoryObject extends built.DirectoryObject {
    constructor(ctx, env) {
      super(ctx, withStore(env, env.FEED));
    }
  }
  for (const method of ['snapshot', 'definition', 'list']) {
    DirectoryObject.prototype[method] = async function late(...args) {
      await new Promise((resolve) => setTimeout(resolve, Number(this.env.BENCH_LATE_MS)));
      return built.DirectoryObject.prototype[method].apply(this, args);
    };
  }
  class FeedObject extends built.FeedObject {
    async copy() {
      return (await this.ctx.storage.get('copy')) ?? 'null';
    }

    async keepCopy(text) {
      await this.ctx.storage.put('copy', text);
    }
  }
  async function fetchCounted(request, env, ctx) {
    way = newWay();
    const mine = way;
    const watched = {
      ...withStore(env, counted(env.FEED, 'copy')),
      GROUPS: counted(env.GROUPS, 'pool'),
      DIRECTORY: counted(env.DIRECTORY, 'directory'),
    };
    const answer = await built.default.fetch(request, watched, ctx);
    const headers = new Headers(answer.headers);
    headers.set('bench-way', JSON.stringify(mine.before));
    return new Response(answer.body, { status: answer.status, headers });
  }
  return { DirectoryObject, FeedObject, worker: { ...built.default, fetch: fetchCounted } };
}
