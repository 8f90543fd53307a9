import type { Refusal } from '../contract/reasons.ts';
import type { Outcome } from '../core/outcome.ts';
import { keyPlaceFor, placeCredentials } from '../upstream/credentials.ts';
import { HeldCall, type CutReason, type Fetcher, type HoldLimits } from '../upstream/held-call.ts';
import { upstreamRequestHeaders } from '../upstream/request-headers.ts';
import { callerResponseHeaders } from '../upstream/response-headers.ts';
import type { Placement, RoutedCall } from '../routing/placement.ts';
import type { Admission, Ticket } from './admission.ts';
import { admit, type Admitted } from './admit.ts';
import type { PlaceListener } from './ask.ts';
import type { Caller, UpstreamKey } from './authenticate.ts';
import { counted } from './calls-in-flight.ts';
import { fetcherOf } from './fetcher.ts';
import type { Located } from './locate.ts';
import type { ProxyCall } from './call.ts';

/** Bounds of calls in automatic groups, and the widest that a configured one can set by default. */
const AUTO_LIMITS: HoldLimits = { idleMs: null, maxHoldMs: 3_600_000 };

/** What became of a call: an answer, a refusal of ours, another way to go, or nobody to answer. */
export type Sent = Response | Refusal | Extract<Admitted, { kind: 'moved' }> | 'left';

/** Sends a call to its upstream, after it has waited for its slot if it needs one. */
export async function send(
  call: ProxyCall,
  located: Located,
  caller: Caller,
  key: UpstreamKey,
  ticket: Ticket,
  listener: PlaceListener | null,
): Promise<Sent> {
  const target = targetOf(call, located, caller, key);
  // What may come behind comments of ours cannot be compressed.
  if (listener !== null) target.headers.set('accept-encoding', 'identity');
  if (!located.operation.limited) return passThrough(call, located, target);
  const { request, env, ctx, table, after } = call;
  const { signal } = request;
  const context = { env, table, ctx, signal, after, listener };
  const admitted = await admit(routedCall(call, located, caller, key), ticket, context);
  switch (admitted.kind) {
    case 'admitted': {
      const waitMs = Math.round(Date.now() - ticket.enqueuedAt);
      try {
        return await sendHeld(call, located, target, admitted.admission, waitMs);
      } catch (error) {
        await admitted.admission.release('failed'); // a bug of ours must not cost a slot
        throw error;
      }
    }
    case 'moved':
      return admitted;
    case 'refused':
      located.body.discard();
      return admitted.refusal;
    case 'left':
      located.body.discard();
      return 'left';
  }
}

/** The call as groups see it. */
export function routedCall(
  { request }: ProxyCall,
  { upstream, operation, model }: Located,
  caller: Caller,
  key: UpstreamKey,
): RoutedCall {
  return {
    upstream,
    operation: operation.name,
    model,
    caller: caller.id,
    keyIds: caller.keyIds,
    keyFingerprint: key.fingerprint,
    header: (name) => request.headers.get(name),
  };
}

interface Target {
  readonly url: string;
  readonly headers: Headers;
  readonly fetcher: Fetcher;
}

function targetOf(call: ProxyCall, located: Located, caller: Caller, key: UpstreamKey): Target {
  const { request, url, env } = call;
  const { upstream, path, operation } = located;
  const clientAcceptEncoding = request.cf?.clientAcceptEncoding;
  const headers = upstreamRequestHeaders(
    request.headers,
    typeof clientAcceptEncoding === 'string' ? clientAcceptEncoding : null,
  );
  // Nothing can leave an empty query, so that need not be a copy.
  const query = url.search === '' ? call.query : new URLSearchParams(call.query);
  const { injected } = key;
  const place = keyPlaceFor(upstream, operation.shape);
  placeCredentials(
    headers,
    query,
    caller.credentials,
    injected === null ? null : { place, key: injected },
  );
  // A query that lost nothing goes on as it was written, not encoded anew.
  const search = query.size === call.query.size ? url.search : `?${query.toString()}`;
  return {
    url: `${upstream.baseUrl}${path}${search === '?' ? '' : search}`,
    headers,
    fetcher: fetcherOf(upstream.via, env),
  };
}

/** A call that takes no slot: the runtime passes its body on by itself. */
async function passThrough(
  { request, ctx }: ProxyCall,
  { body, upstream }: Located,
  { url, headers, fetcher }: Target,
): Promise<Response | Refusal> {
  ctx.waitUntil(body.sent);
  try {
    const answer = await fetcher.fetch(url, {
      method: request.method,
      headers,
      body: body.open(),
      redirect: 'manual',
      encodeResponseBody: 'manual',
    });
    const { status, statusText, headers: given } = answer;
    const init: ResponseInit = { status, statusText, headers: given, encodeBody: 'manual' };
    const response = new Response(answer.body, init);
    callerResponseHeaders(response.headers);
    return response;
  } catch {
    return unreachable(upstream.id, null);
  } finally {
    body.discard();
  }
}

/** A call that holds a slot until its last byte. */
async function sendHeld(
  { request, ctx, after }: ProxyCall,
  { body, upstream }: Located,
  target: Target,
  admission: Admission,
  waitMs: number,
): Promise<Response | Refusal | 'left'> {
  const held = new HeldCall(request.signal, holdLimits(admission.placements), after);
  const settle = (outcome: Outcome): Promise<void> => {
    body.discard();
    return admission.release(outcome);
  };
  admission.keep(() => held.cut('revoked'));
  const answer = await held.send(target.fetcher, target.url, {
    method: request.method,
    headers: target.headers,
    body: body.open(),
  });
  const noAnswer = (): Refusal | 'left' =>
    held.cutBy === 'left' ? 'left' : unreachable(upstream.id, held.cutBy);
  if (answer === null) {
    ctx.waitUntil(settle(held.cutBy === null ? 'failed' : 'cancelled'));
    return noAnswer();
  }
  admission.reportStatus(answer.status);
  const { response, done } = await held.relay(answer);
  ctx.waitUntil(counted(done.then(settle)));
  if (response === null) return noAnswer();
  const { headers } = response;
  headers.set('headgate-groups', admission.placements.map(({ group }) => group).join(', '));
  headers.set('headgate-wait-ms', String(waitMs));
  headers.set('headgate-tries', '1');
  if (admission.leaseIds.length > 0) headers.set('headgate-lease', admission.leaseIds.join(', '));
  return response;
}

/** The strictest of what the groups of a call allow. */
function holdLimits(placements: readonly Placement[]): HoldLimits {
  let { idleMs, maxHoldMs }: HoldLimits = AUTO_LIMITS;
  for (const { config } of placements) {
    if (config === null) continue;
    if (config.holds.idle_ms !== null) idleMs = Math.min(idleMs ?? Infinity, config.holds.idle_ms);
    maxHoldMs = Math.min(maxHoldMs, config.holds.max_hold_ms);
  }
  return { idleMs, maxHoldMs };
}

function unreachable(upstreamId: string, cutBy: CutReason | null): Refusal {
  const why: Record<CutReason, string> = {
    left: 'the caller has gone',
    revoked: 'the call was ended by the operator',
    idle: 'it sent nothing in time',
    max_hold: 'the call took longer than its group allows',
  };
  const because = cutBy === null ? 'the connection failed' : why[cutBy];
  const message = `The upstream ${upstreamId} gave no answer: ${because}.`;
  return { reason: 'upstream_unreachable', message };
}
