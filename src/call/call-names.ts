import { mayBeUrlencoded } from '../upstream/body/content-type.ts';
import { modelIn, type BodyProof } from '../upstream/body/request-body.ts';
import { estimateBody } from '../upstream/usage/estimate.ts';
import { REQUEST_TYPE_HEADER, withTierHeaders } from '../providers/prices/tiers.ts';
import type { ServiceTiers } from '../upstream/usage/tiers.ts';
import { BoundedMap } from '../core/parts/bounded-map.ts';
import type { RefusalScope, Scope } from '../core/words/signal.ts';
import { steadyClock } from '../runtime/clock.ts';
import type { CallBody } from './body.ts';
import { readBody } from './find-model.ts';
import { bodyBudget } from './isolate.ts';
import type { Candidate } from './plan.ts';
import { readAhead } from './read-ahead.ts';
import type { CallerLeft, Rejected } from './result.ts';

interface ModelAndTier extends Pick<Scope, 'model' | 'tier'> {
  /** Whether the whole body was read. Otherwise it may contain a tier, and a model if `model` is null. */
  readonly isWhole: boolean;
}

/** Accepts every body, with any model or an unreadable one. */
const ANY_MODEL: BodyProof = {
  isBound: false,
  allowsReferences: () => true,
  against: () => null,
};

const DEFAULT_TIERS: ReadonlySet<string> = new Set([
  '',
  'auto',
  'default',
  'on_demand',
  'shared',
  'standard',
  'standard_only',
  'unspecified',
]);

/** Prefix of Gemini's tiers in its protocol. The API also accepts the names without it. */
const ENUM_PREFIX = /^service_tier_/;

/** Tier of calls whose bodies are too large to read. A refusal of one holds only other such calls. */
const UNKNOWN_TIER = 'unknown';

/** Names by body, so that several attempts of one call read it once. */
const known = new WeakMap<CallBody, ModelAndTier>();

/** How long calls read their bodies in advance after a pool held calls by names. */
const BY_NAMES_MS = 30_000;
const POOLS_MAX = 1_000;

const byNames = new BoundedMap<string, number>(POOLS_MAX);

/** Notes that a pool holds some calls by the names in their bodies, so the next calls to it read theirs first. */
export function noteByNames(pool: string): void {
  byNames.set(pool, steadyClock.now() + BY_NAMES_MS);
}

/** Whether a pool recently held calls by the names in their bodies. */
export function wentByNames(pool: string): boolean {
  return (byNames.get(pool) ?? 0) > steadyClock.now();
}

/** The model and service tier of a call. Refusals hold calls by these names. */
export type NamesOfCall = Pick<
  CallNamesReader,
  'isUnread' | 'model' | 'tier' | 'refused' | 'read' | 'reachOf'
>;

/**
 * Reads the model and service tier of one call. Most bodies pass through Headgate unread. They are read only for a pool
 * that holds calls by these names, and after a refusal about them.
 */
export class CallNamesReader implements NamesOfCall {
  readonly #candidate: Candidate;

  constructor(candidate: Candidate) {
    this.#candidate = candidate;
  }

  /** Whether the body may contain a model or tier that was not read yet. */
  get isUnread(): boolean {
    const { call, located } = this.#candidate;
    const { model, socket } = located.operation;
    if (model.from === 'none' || socket === 'session') return false;
    return call.body.contentLength !== 0 && !known.has(call.body);
  }

  get model(): string | null {
    const { call, located } = this.#candidate;
    const read = located.model ?? known.get(call.body)?.model;
    if (read !== undefined && read !== null) return read;
    // Most calls have no query, and a look-up calls into the runtime.
    return call.url.search === '' ? null : call.query.get('model');
  }

  get tier(): string | null {
    return known.get(this.#candidate.call.body)?.tier ?? null;
  }

  /** The names to which a refusal of the call applies. They are read first if possible. */
  get refused(): Pick<Scope, 'model' | 'tier'> {
    return { model: this.model, tier: this.isUnread ? UNKNOWN_TIER : this.tier };
  }

  /**
   * Reads the names before the call is sent, unless they are known. If the body is too large to keep, or its length
   * is unknown, reads only its beginning. Returns null if the call continues.
   */
  async read(): Promise<Rejected | CallerLeft | null> {
    if (!this.isUnread) return null;
    const { call, located, rules } = this.#candidate;
    const { body } = call;
    const ended = await readAhead(this.#candidate, rules.retries.max_body_bytes);
    if (ended !== null) return ended;
    await this.readKept();
    if (!this.isUnread) return null;
    let model = located.model;
    if (model === null && located.operation.model.from === 'body' && body.isComing) {
      const again = { ...call, request: body.readAgain(call.request) };
      const search = {
        wantsModel: true,
        wantsStream: false,
        proof: ANY_MODEL,
        depth: 'first',
      } as const;
      const read = await readBody(again, search);
      if (read.kind !== 'read') return read;
      body.unprove();
      ({ model } = read);
    }
    known.set(body, { model, tier: UNKNOWN_TIER, isWhole: false });
    return null;
  }

  /** Reads the names if the whole body is in memory, unless they are known. */
  async readKept(): Promise<void> {
    const { call, located } = this.#candidate;
    const { body, request } = call;
    const { bytes } = body;
    if (!this.isUnread || bytes === null) return;
    const model = located.model ?? (await this.#modelIn(bytes));
    const { estimate } = await estimateBody({
      chunks: [bytes],
      contentLength: bytes.length,
      contentType: request.headers.get('content-type'),
      contentEncoding: body.encodingIn(request.headers),
    });
    const tier = tierOf(withTierHeaders(estimate.tiers, request.headers).asked, request.headers);
    known.set(body, { model, tier, isWhole: true });
  }

  async #modelIn(bytes: Uint8Array): Promise<string | null> {
    const { request, body } = this.#candidate.call;
    const type = request.headers.get('content-type') ?? '';
    if (!mayBeUrlencoded(type) || body.encodingIn(request.headers) !== null) {
      return modelIn(bytes, request, bodyBudget);
    }
    return new URLSearchParams(new TextDecoder().decode(bytes)).get('model');
  }

  /** Narrows a refusal about a model or tier to the call itself if that name is unknown. */
  reachOf(scope: RefusalScope): RefusalScope {
    if (scope !== 'model' && scope !== 'tier') return scope;
    const { call, located } = this.#candidate;
    const isWhole = known.get(call.body)?.isWhole ?? !this.isUnread;
    const isKnown = isWhole || (scope === 'model' && this.model !== null);
    const isNameless = located.operation.model.from === 'none';
    return isKnown || isNameless ? scope : 'call';
  }
}

export class ReadNames implements NamesOfCall {
  readonly isUnread = false;
  readonly model: string | null;
  readonly tier: string | null;

  constructor(model: string | null, tiers: ServiceTiers, headers: Pick<Headers, 'get'>) {
    this.model = model;
    this.tier = tierOf(tiers, headers);
  }

  get refused(): Pick<Scope, 'model' | 'tier'> {
    return { model: this.model, tier: this.tier };
  }

  read(): Promise<null> {
    return Promise.resolve(null);
  }

  reachOf(scope: RefusalScope): RefusalScope {
    return scope;
  }
}

/** The tier of a call. null for the default. */
function tierOf(
  { service_tier: tier, speed, latency }: ServiceTiers,
  headers: Pick<Headers, 'get'>,
): string | null {
  const requestType = headers.get(REQUEST_TYPE_HEADER)?.trim().toLowerCase();
  const named = [requestType, tier?.trim().replace(ENUM_PREFIX, ''), speed, latency].filter(
    (value) => value !== undefined && !DEFAULT_TIERS.has(value),
  );
  return named.length === 0 ? null : named.join(' ');
}
