import { logEvent } from '../../runtime/log.ts';
import { steadyClock } from '../../runtime/steady-clock.ts';
import type { Candidate } from '../plan.ts';

/** How long it is not told again of the same upstream: all calls that go there are refused alike. */
const SILENT_MS = 60_000;

const WHAT_TO_SET =
  'A Worker calls from near its caller. Set [placement] in wrangler.toml to a region that this upstream serves, or put a gateway that it serves into base_url, and deploy: docs/operations.md, "Region and placement".';

/** When it was last told of each upstream, by this isolate. */
const reportedAt = new Map<string, number>();

/** Tells an operator that an upstream serves nobody from here: where that is, and what to set. */
export function logEgressRefused(
  { call: { request }, located: { upstream } }: Candidate,
  answer: Response | null,
): void {
  const now = steadyClock.now();
  if (now - (reportedAt.get(upstream.id) ?? -Infinity) < SILENT_MS) return;
  reportedAt.set(upstream.id, now);
  const colo = request.cf?.colo;
  logEvent('upstream_refused_egress', {
    upstream: upstream.id,
    status: answer?.status ?? null,
    // Of Cloudflare's places: where the caller came in, and where the call went out to, if it went there.
    colo: typeof colo === 'string' ? colo : null,
    upstream_colo: /-([A-Z]{3})$/.exec(answer?.headers.get('cf-ray') ?? '')?.[1] ?? null,
    set: WHAT_TO_SET,
  });
}
