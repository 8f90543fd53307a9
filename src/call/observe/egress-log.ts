import { logEvent } from '../../runtime/log.ts';
import { steadyClock } from '../../runtime/clock.ts';
import type { Candidate } from '../plan.ts';

/** Minimum interval between two lines about the same upstream, because all calls to it are refused alike. */
const SILENT_MS = 60_000;

const WHAT_TO_SET =
  'A Worker sends calls from a location near its caller. Set [placement] in wrangler.toml to a region that this upstream serves, or set base_url to a gateway that it serves, and deploy. See docs/production.md, "Region and placement".';

/** When each upstream was last logged by this isolate. */
const reportedAt = new Map<string, number>();

/** Logs that an upstream serves no calls from this location, with the location and what to set. */
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
    // Cloudflare locations: where the caller's request arrived, and from where the call left if it went through
    // Cloudflare.
    colo: typeof colo === 'string' ? colo : null,
    upstream_colo: /-([A-Z]{3})$/.exec(answer?.headers.get('cf-ray') ?? '')?.[1] ?? null,
    set: WHAT_TO_SET,
  });
}
