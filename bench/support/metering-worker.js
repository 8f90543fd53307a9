import { CallClock, onTimer } from '../../src/runtime/async.ts';
import { pipeObserved } from '../../src/upstream/transfer/observed-pipe.ts';
import { pipeMetered, pipeWatched } from '../../src/upstream/transfer/watched-pipe.ts';
import { createUsageDrop } from '../../src/upstream/usage/usage-drop.ts';
import { createReportMeter, createUsageMeter } from '../../src/upstream/usage/usage-meter.ts';

// The identity pipe of `bare-worker.js` with metering in it. `env.KIND` says how much.

/** Longer than any run: the timers are there, and do not fire. */
const IDLE_MS = 600_000;
const STALLED_MS = 60_000;

/** Meters of what is looked at, by the kind of pipe. */
const METERS = { observed: null, metered: createReportMeter, estimated: createUsageMeter };

/** Pipes natively, and looks at what has passed. */
function observe(create, { body, headers }, { writable, taken }, signal) {
  const { after } = new CallClock();
  const meter = create?.('openai', headers.get('content-type'), null) ?? null;
  const idle = { afterMs: IDLE_MS, onOver() {}, after };
  const stalled = { afterMs: STALLED_MS, onOver() {}, after };
  const onSaid = (bytes) => meter?.push(bytes);
  return pipeObserved(body, writable, taken, { signal, idle, stalled, after, onSaid });
}

function pipe(kind, upstream, writable, signal) {
  const { body, headers } = upstream;
  if (kind === 'native') return body.pipeTo(writable, { signal });
  const idle = { afterMs: IDLE_MS, onOver() {}, after: onTimer };
  const stalled = { afterMs: STALLED_MS, onOver() {}, after: onTimer };
  if (kind === 'watched') return pipeWatched(body, writable, { signal, idle, stalled });
  const meter = createUsageMeter('openai', headers.get('content-type'), null);
  return pipeMetered(
    body,
    writable,
    { signal, idle, stalled },
    { meter, filter: createUsageDrop() },
  );
}

export default {
  async fetch(request, env, ctx) {
    const stop = new AbortController();
    request.signal.addEventListener('abort', () => stop.abort(), { once: true });
    const { pathname, search } = new URL(request.url);
    const upstream = await fetch(`${env.UPSTREAM}${pathname}${search}`, {
      method: request.method,
      headers: request.headers,
      body: request.body,
      signal: stop.signal,
      redirect: 'manual',
      encodeResponseBody: 'manual',
    });
    const { status, statusText, headers } = upstream;
    const { readable, writable } = new IdentityTransformStream();
    if (env.KIND in METERS) {
      const [out, taken] = readable.tee();
      ctx.waitUntil(observe(METERS[env.KIND], upstream, { writable, taken }, stop.signal));
      return new Response(out, { status, statusText, headers, encodeBody: 'manual' });
    }
    ctx.waitUntil(pipe(env.KIND, upstream, writable, stop.signal));
    return new Response(readable, { status, statusText, headers, encodeBody: 'manual' });
  },
};
