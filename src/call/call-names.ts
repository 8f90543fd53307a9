import { modelIn } from '../upstream/body/request-body.ts';
import { estimateCall } from '../upstream/usage/estimate.ts';
import { withTierHeaders } from '../providers/prices/tiers.ts';
import type { Tiers } from '../upstream/usage/tiers.ts';
import { BoundedMap } from '../core/parts/bounded-map.ts';
import type { Scope } from '../core/words/scope.ts';
import { steadyClock } from '../runtime/steady-clock.ts';
import type { CallBody } from './body.ts';
import { bodyBudget } from './isolate.ts';
import type { Candidate } from './plan.ts';

/** The model and the service tier that a call asks for. */
type Names = Pick<Scope, 'model' | 'tier'>;

/** Tiers that a call gets without asking. */
const DEFAULT_TIERS: ReadonlySet<string> = new Set([
  'auto',
  'default',
  'on_demand',
  'standard',
  'standard_only',
]);

/** Names that were read of each body. Several attempts of one call read it once. */
const known = new WeakMap<CallBody, Names>();

/** How long calls to a pool that went by names read their bodies before they ask it. */
const BY_NAMES_MS = 30_000;
const POOLS_MAX = 1_000;

const byNames = new BoundedMap<string, number>(POOLS_MAX);

/** Notes that a pool holds some calls by the names in their bodies, so the next calls to it read theirs first. */
export function noteByNames(pool: string): void {
  byNames.set(pool, steadyClock.now() + BY_NAMES_MS);
}

/** Whether a pool held calls by the names in their bodies a moment ago. */
export function wentByNames(pool: string): boolean {
  return (byNames.get(pool) ?? 0) > steadyClock.now();
}

/**
 * The model and the service tier of one call. Most bodies pass through Headgate unread. They are read only for a pool that
 * holds some calls by these names, and after a refusal that is about them.
 */
export class CallNames {
  readonly #candidate: Candidate;

  constructor(candidate: Candidate) {
    this.#candidate = candidate;
  }

  /** Whether the body may name a model or a tier that is not known yet. */
  get isUnread(): boolean {
    const { call, located } = this.#candidate;
    const { model, socket } = located.operation;
    return model.from === 'body' && socket === undefined && !known.has(call.body);
  }

  get model(): string | null {
    const { call, located } = this.#candidate;
    return located.model ?? known.get(call.body)?.model ?? null;
  }

  get tier(): string | null {
    return known.get(this.#candidate.call.body)?.tier ?? null;
  }

  /** Reads the names, unless they are known. A body that is too large to be kept names none. */
  async read(): Promise<void> {
    if (!this.isUnread) return;
    const { call, located, rules } = this.#candidate;
    const { body, request, signal } = call;
    await body.keep(rules.retries.max_body_bytes, signal);
    const { bytes } = body;
    if (bytes === null) return void known.set(body, { model: null, tier: null });
    const model = located.model ?? (await modelIn(bytes, request, bodyBudget));
    const { tiers } = estimateCall({
      chunks: [bytes],
      contentLength: bytes.length,
      contentType: request.headers.get('content-type'),
      contentEncoding: request.headers.get('content-encoding'),
    });
    known.set(body, { model, tier: tierOf(withTierHeaders(tiers, request.headers).asked) });
  }
}

/** Names the tier of a call; null: the default. */
function tierOf({ service_tier: tier, speed, latency }: Tiers): string | null {
  const named = [tier, speed, latency].filter(
    (value) => value !== undefined && !DEFAULT_TIERS.has(value),
  );
  return named.length === 0 ? null : named.join(' ');
}
