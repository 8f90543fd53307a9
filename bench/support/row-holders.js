// Callers of a group's object that hold leases as a Worker does, without a call behind them.

/** Calls for a slot that are on their way at once. */
const AT_ONCE = 500;

const SLICE_MS = 25_000;

/** Milliseconds before each try to take up a lease again; after the last one, as often as that. */
const RETRY_PAUSES_MS = [0, 250, 1_000, 5_000];

/** Pauses that run, by their length: the platform allows 10,000 timers, and there are more holders. */
function sharedPauses() {
  const running = new Map();
  return (ms) => {
    if (ms === 0) return Promise.resolve();
    if (!running.has(ms)) {
      const over = new Promise((resolve) => setTimeout(resolve, ms));
      running.set(
        ms,
        over.then(() => running.delete(ms)),
      );
    }
    return running.get(ms);
  };
}

function requestFor(group) {
  const ticketId = crypto.randomUUID();
  return {
    version: 1,
    group,
    partition: null,
    assumed: null,
    // That of the first configuration, which the object has yet to ask for.
    configVersion: 1,
    ticketId,
    attempt: 1,
    enqueuedAt: Date.now(),
    deadlineAt: null,
    wait: false,
    sliceMs: SLICE_MS,
    caller: 'key_bench_5f2b9c81d0',
    tenant: 'key_bench_5f2b9c81d0',
    agent: null,
    agentStartedAt: null,
    lane: 'normal',
    slots: 1,
    parents: [],
    upstream: group,
    model: 'gpt-4o-mini',
    isTry: false,
    waitsElsewhere: false,
    holdsNarrower: false,
    passedUnlimited: 0,
  };
}

async function granted(pool, request) {
  const answer = await pool.acquire(request);
  if (answer.kind !== 'granted') throw new Error(`not granted: ${JSON.stringify(answer)}`);
  return answer;
}

/** Asks for a slot, and gives it back at once; tells whether there was one. */
export async function tryOnce(pool, group) {
  const answer = await pool.acquire(requestFor(group));
  if (answer.kind !== 'granted') return false;
  await answer.lease.release('success', 200);
  answer.lease[Symbol.dispose]();
  return true;
}

/** Takes up a lease again, with all that its answer told: another build may want more of it back. */
async function resumed({ poolNow, pause }, request, answer) {
  const known = { ...answer, lease: undefined, kind: undefined };
  for (let tries = 0; ; tries += 1) {
    await pause(RETRY_PAUSES_MS[tries] ?? RETRY_PAUSES_MS.at(-1));
    try {
      const next = await poolNow().resume({ ...request, ...known });
      return next.kind === 'granted' ? next : null;
    } catch {
      // The next try.
    }
  }
}

/** Renews a lease, and takes it up again after a reset, until it is gone for good. */
async function keep(context, request, first, onResumed) {
  for (let held = first; held !== null;) {
    const answer = await held.lease.renew(200).catch(() => 'gone');
    if (answer === 'revoking') return;
    if (answer === 'ok') continue;
    held = await resumed(context, request, held);
    if (held !== null) onResumed();
  }
}

/**
 * Acquires so many leases and keeps them as long as the answer is read. A line comes when all are held, and
 * another one whenever all have been taken up again.
 */
export function holdLeases(poolNow, group, leases, ctx) {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const tell = (line) => writer.write(new TextEncoder().encode(`${line}\n`));
  // Timers and promises belong to one request.
  const context = { poolNow, pause: sharedPauses() };
  let resumptions = 0;
  const onResumed = () => {
    resumptions += 1;
    if (resumptions % leases === 0) ctx.waitUntil(tell('resumed'));
  };
  const work = async () => {
    const kept = [];
    while (kept.length < leases) {
      const count = Math.min(AT_ONCE, leases - kept.length);
      const requests = Array.from({ length: count }, () => requestFor(group));
      const answers = await Promise.all(requests.map((request) => granted(poolNow(), request)));
      for (const [index, answer] of answers.entries()) {
        kept.push(keep(context, requests[index], answer, onResumed));
      }
    }
    await tell('held');
    await Promise.all(kept);
  };
  ctx.waitUntil(work().catch((error) => writer.abort(error)));
  return new Response(readable);
}
