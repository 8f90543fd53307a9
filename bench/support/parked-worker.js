// A Worker whose only doing is to ask a pool for slots, in an isolate of its own beside that of the objects.

const GROUP = 'parked';

/** Longer than anything that is measured here takes. */
const SLICE_MS = 3_600_000;

function requestFor(ticketId, mayAskLater) {
  return {
    version: 1,
    group: GROUP,
    partition: null,
    assumed: null,
    configVersion: 1,
    ticketId,
    attempt: 1,
    sentAt: Date.now(),
    enqueuedAt: Date.now(),
    deadlineAt: null,
    wait: true,
    sliceMs: SLICE_MS,
    mayAskLater,
    caller: 'key_bench_5f2b9c81d0',
    tenant: 'key_bench_5f2b9c81d0',
    agent: null,
    agentStartedAt: null,
    lane: 'normal',
    slots: 1,
    parents: [],
    upstream: GROUP,
    model: 'gpt-4o-mini',
    estimate: {
      inputTokens: 1_200,
      maxOutputTokens: 1_000,
      reserve: 'mean',
      price: { input: 0.000_001, output: 0.000_004 },
    },
    isTry: false,
    waitsElsewhere: false,
    holdsNarrower: false,
    passedUnlimited: 0,
  };
}

const pool = (env) => env.GROUPS.getByName(GROUP);

/** Calls after which a pool knows how long they take, and how long that is: the last of all may still wait. */
const LEARNED_CALLS = 10;
const LEARNED_MS = 500;

/** Tells the pool what the directory would: so many slots, and room for all who wait. */
async function configure(env, version, slots) {
  const config = JSON.stringify({
    name: GROUP,
    limits: { max_concurrency: slots },
    queue: { max_length: 5_000, timeout_ms: SLICE_MS },
  });
  await pool(env).reconfigure({ version, routingVersion: 0, config });
}

async function define(env) {
  await configure(env, 1, LEARNED_CALLS);
  const calls = Array.from({ length: LEARNED_CALLS }, async () => {
    const { lease } = await pool(env).acquire(requestFor(crypto.randomUUID(), false));
    await new Promise((resolve) => setTimeout(resolve, LEARNED_MS));
    await lease.release('success', 200);
    lease[Symbol.dispose]();
  });
  await Promise.all(calls);
  await configure(env, 2, 1);
}

/** Asks for one slot, and stays parked as long as the answer is read. */
function park(env, mayAskLater, ctx) {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const asked = pool(env).acquire(requestFor(crypto.randomUUID(), mayAskLater));
  const hold = async () => {
    const answer = await asked;
    while (answer.kind === 'granted') await answer.lease.renew(200);
  };
  ctx.waitUntil(hold());
  ctx.waitUntil(writer.write(new TextEncoder().encode('asked\n')));
  return new Response(readable);
}

export default {
  async fetch(request, env, ctx) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/define') {
      await define(env);
      return Response.json(true);
    }
    if (pathname === '/status') return Response.json(await pool(env).status());
    return park(env, searchParams.has('later'), ctx);
  },
};
