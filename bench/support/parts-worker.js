import { RpcTarget } from 'cloudflare:workers';
import { GroupObject as RealGroupObject } from '../../src/group/group-object.ts';
import { createApp } from '../../src/http/app.ts';

// Headgate with parts switched off, for the breakdown. `env.UPSTREAM_PART` says how much of it runs:
// its name is that of a secret because those reach a Worker that `serve` starts.

export { DirectoryObject } from '../../src/directory/directory-object.ts';
export { FeedObject } from '../../src/feed/feed-object.ts';
export { TrialsObject } from '../../src/group/trials-object.ts';

/** Leases of nobody. */
const NO_LEASE = { renew: async () => 'ok', release: async () => {}, [Symbol.dispose]() {} };

/** A group that grants in the Worker itself, so that no object is asked. */
const grantsAtOnce = {
  acquire: async ({ ticketId, configVersion }) => ({
    kind: 'granted',
    lease: NO_LEASE,
    leaseId: `${ticketId}.1`,
    attachment: 1,
    configVersion,
  }),
};

/** The real group, but its leases are only let go of: no release is sent. */
function withoutRelease(group) {
  return {
    acquire: async (request) => {
      const answer = await group.acquire(request);
      const { lease } = answer;
      return {
        ...answer,
        lease: { ...NO_LEASE, [Symbol.dispose]: () => lease[Symbol.dispose]() },
      };
    },
  };
}

class BareLease extends RpcTarget {
  async release() {}
}

/** Makes the storage keep nothing. */
function withoutRows(ctx) {
  const exec = () => ({ toArray: () => [] });
  Object.defineProperty(ctx.storage, 'sql', { value: { exec } });
  return ctx;
}

export class GroupObject extends RealGroupObject {
  #part;

  constructor(ctx, env) {
    super(env.UPSTREAM_PART === 'core' ? withoutRows(ctx) : ctx, env);
    this.#part = env.UPSTREAM_PART;
  }

  async acquire(request) {
    if (this.#part === 'all') return super.acquire(request);
    const isReal = this.#part === 'core' || this.#part === 'rows';
    if (isReal) return super.acquire({ ...request, mayBorrow: false });
    const { ticketId, configVersion } = request;
    const lease = new BareLease();
    return { kind: 'granted', lease, leaseId: `${ticketId}.1`, attachment: 1, configVersion };
  }
}

function groupsOf(env) {
  if (env.UPSTREAM_PART === 'worker') return { getByName: () => grantsAtOnce };
  if (env.UPSTREAM_PART !== 'acquire') return env.GROUPS;
  return { getByName: (name) => withoutRelease(env.GROUPS.getByName(name)) };
}

const app = createApp();
let partial = null;

export default {
  fetch(request, env, ctx) {
    partial ??= { ...env, GROUPS: groupsOf(env) };
    return app.fetch(request, partial, ctx);
  },
};
