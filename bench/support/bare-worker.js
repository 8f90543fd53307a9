import { DurableObject, RpcTarget } from 'cloudflare:workers';

// What Headgate is compared to: Workers that do nothing but pass a call on. `env.KIND` says how.

class Lease extends RpcTarget {
  #object;
  constructor(object) {
    super();
    this.#object = object;
  }
  async release() {
    this.#object.held.delete(this);
  }
}

/** Grants to everybody and writes nothing. */
export class Slots extends DurableObject {
  held = new Set();
  async acquire(request) {
    const lease = new Lease(this);
    this.held.add(lease);
    return { kind: 'granted', lease, ticketId: request.ticketId };
  }
}

const BODILESS = new Set([101, 204, 205, 304]);

/** As it would be written without a second thought: the runtime pipes by itself. */
async function passNatively(request, env) {
  const upstream = await fetch(upstreamUrl(request, env), request);
  return new Response(upstream.body, upstream);
}

/** The pipe that notices a caller who leaves, and keeps the context alive to the last byte. */
async function passThroughPipe(request, env, ctx, whenDone) {
  const stop = new AbortController();
  request.signal.addEventListener('abort', () => stop.abort(), { once: true });
  const upstream = await fetch(upstreamUrl(request, env), {
    method: request.method,
    headers: request.headers,
    body: request.body,
    signal: stop.signal,
    redirect: 'manual',
    encodeResponseBody: 'manual',
  });
  const { status, statusText, headers } = upstream;
  const init = { status, statusText, headers, encodeBody: 'manual' };
  if (upstream.body === null || BODILESS.has(status)) {
    ctx.waitUntil(whenDone());
    return new Response(null, init);
  }
  const length = headers.get('content-length');
  const { readable, writable } =
    length === null ? new IdentityTransformStream() : new FixedLengthStream(BigInt(length));
  const piped = upstream.body.pipeTo(writable, { signal: stop.signal });
  ctx.waitUntil(piped.then(whenDone, whenDone));
  return new Response(readable, init);
}

async function passWithLease(request, env, ctx) {
  const ticketId = crypto.randomUUID();
  const granted = await env.SLOTS.getByName('one').acquire({ ticketId, waitMs: null });
  return passThroughPipe(request, env, ctx, async () => {
    await granted.lease.release();
    granted.lease[Symbol.dispose]();
  });
}

/** The least that hears what goes by: each side's messages are sent to the other one. */
async function pumpSocket(request, env) {
  const upstream = await fetch(upstreamUrl(request, env), { headers: request.headers });
  const { 0: client, 1: server } = new WebSocketPair();
  for (const [from, to] of [
    [server, upstream.webSocket],
    [upstream.webSocket, server],
  ]) {
    from.binaryType = 'arraybuffer';
    from.addEventListener('message', ({ data }) => to.send(data));
    from.addEventListener('close', () => to.close());
    from.accept();
  }
  return new Response(null, { status: 101, webSocket: client });
}

function upstreamUrl(request, env) {
  const { pathname, search } = new URL(request.url);
  return `${env.UPSTREAM}${pathname}${search}`;
}

export default {
  fetch(request, env, ctx) {
    if (env.KIND === 'native') return passNatively(request, env);
    if (env.KIND === 'socket') return pumpSocket(request, env);
    if (env.KIND === 'pipe') return passThroughPipe(request, env, ctx, async () => {});
    return passWithLease(request, env, ctx);
  },
};
