import { UploadPace, type UploadPaceOptions } from '../../upstream/transfer/watched-pipe.ts';
import { PlainAbort, steadyClock, type AbortSource } from '../../runtime/async.ts';
import { mayBeUrlencoded, bodyForm } from '../../upstream/body/content-type.ts';
import { modelIn, type BodyProof } from '../../upstream/body/request-body.ts';
import { estimateBody } from '../../upstream/usage/estimate.ts';
import { REQUEST_TYPE_HEADER, withTierHeaders } from '../../providers/prices/tiers.ts';
import type { ServiceTiers } from '../../upstream/usage/tiers.ts';
import { BoundedMap } from '../../core/parts/bounded-map.ts';
import type { RefusalScope, Scope } from '../../core/words/signal.ts';
import { SESSION_SCAN_BYTES_MAX, sessionIn } from '../../upstream/body/encoded-scan.ts';
import { sessionHash } from '../../runtime/secrets.ts';
import { bodyBudget, type CallBody } from '../request/body.ts';
import {
  LEFT,
  rejected,
  uploadTooSlow,
  type CallerLeft,
  type Rejected,
} from '../results/result.ts';
import { readBody } from '../request/find-model.ts';
import { SESSION_HEADERS } from '../request/caller-headers.ts';
import { READ_BYTES_MAX } from './metering.ts';
import type { Candidate } from './plan.ts';

/**
 * Reads the body of a call before its slots are acquired, and finds the names that its pools need: the model, the
 * service tier and the session.
 */

/** Maximum size of a body that is always read before its call takes a slot. It arrives in a few packets. */
const SMALL_BYTES = 32 * 1024;

/**
 * Reads a body that is still arriving before its call acquires a slot, which a slow caller would otherwise hold. It
 * reads small bodies, and every body whose tokens are counted. The body must arrive as fast as with a slot. Returns
 * null if the call continues, whether its body was read or not.
 */
export async function readAhead(
  { call, rules }: Candidate,
  bytesMax = rules.isMetered ? READ_BYTES_MAX : SMALL_BYTES,
): Promise<Rejected | CallerLeft | null> {
  const { body, after, signal } = call;
  const { hold } = rules;
  const bytes = body.contentLength ?? Infinity;
  if (bytes > bytesMax) return null;
  const kept =
    bytes <= SMALL_BYTES
      ? // A small body is read natively as a whole, which costs least.
        await body.keep(bytes, signal, {
          limit: (stop) => after(hold.stalledMs ?? hold.maxHoldMs, stop),
        })
      : await keepPaced(body, bytes, { ...hold, after, signal });
  if (kept !== 'aborted') return null;
  if (body.fault !== null) return rejected(body.fault);
  return signal.aborted ? LEFT : uploadTooSlow(hold);
}

interface ReadAheadLimits extends Omit<UploadPaceOptions, 'onOver'> {
  readonly signal: AbortSource;
}

/** Keeps a larger body at the pace that its group requires. */
function keepPaced(
  body: CallBody,
  bytes: number,
  { signal, ...limits }: ReadAheadLimits,
): ReturnType<CallBody['keep']> {
  const over = new PlainAbort(signal);
  const pace = new UploadPace({ ...limits, onOver: () => over.abort() });
  return body.keep(bytes, over, { pace });
}

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
const knownNames = new WeakMap<CallBody, ModelAndTier>();

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
    return call.body.contentLength !== 0 && !knownNames.has(call.body);
  }

  get model(): string | null {
    const { call, located } = this.#candidate;
    const read = located.model ?? knownNames.get(call.body)?.model;
    if (read !== undefined && read !== null) return read;
    // Most calls have no query, and a look-up calls into the runtime.
    return call.url.search === '' ? null : call.query.get('model');
  }

  get tier(): string | null {
    return knownNames.get(this.#candidate.call.body)?.tier ?? null;
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
    knownNames.set(body, { model, tier: UNKNOWN_TIER, isWhole: false });
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
    knownNames.set(body, { model, tier, isWhole: true });
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
    const isWhole = knownNames.get(call.body)?.isWhole ?? !this.isUnread;
    const isKnown = isWhole || (scope === 'model' && this.model !== null);
    const isNameless = located.operation.model.from === 'none';
    return isKnown || isNameless ? scope : 'call';
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

/** How long calls read their sessions in advance after a pool needed one. */
const BY_SESSIONS_MS = 30_000;

/** Maximum bytes of a header that are hashed. */
const HEADER_LENGTH_MAX = 512;

const bySessions = new BoundedMap<string, number>(POOLS_MAX);

/** Notes that calls of a pool have to wait, so that the next ones read their sessions first. */
export function noteBySessions(pool: string): void {
  bySessions.set(pool, steadyClock.now() + BY_SESSIONS_MS);
}

export function wentBySessions(pool: string): boolean {
  return (bySessions.get(pool) ?? 0) > steadyClock.now();
}

/** Hashes by body, so that several attempts of one call read its session once. */
const knownSessions = new WeakMap<CallBody, string | null>();

/**
 * The session of a call that names no agent. Sessions share the scheduling order within a tenant and affect nothing
 * else. They are read only once a call has to wait.
 */
export interface SessionOfCall {
  /** Whether the headers and the body have not been searched yet. */
  readonly isUnread: boolean;
  /** Its hash. null if there is none, or it is unread. */
  readonly hash: string | null;
  /** Reads it. Returns null if the call continues. */
  read(): Promise<Rejected | CallerLeft | null>;
}

/** The session of a call. null if the call names its agent, or is a WebSocket. */
export function sessionOf(candidate: Candidate): SessionOfCall | null {
  const { call, located } = candidate;
  if (call.headers.agent !== null || located.operation.socket !== undefined) return null;
  return new CallSession(candidate);
}

class CallSession implements SessionOfCall {
  readonly #candidate: Candidate;

  constructor(candidate: Candidate) {
    this.#candidate = candidate;
  }

  get isUnread(): boolean {
    return !knownSessions.has(this.#candidate.call.body);
  }

  get hash(): string | null {
    return knownSessions.get(this.#candidate.call.body) ?? null;
  }

  async read(): Promise<Rejected | CallerLeft | null> {
    if (!this.isUnread) return null;
    const { call } = this.#candidate;
    const { body, request, table } = call;
    let text = inHeaders(request.headers);
    if (text === null) {
      const isJson = bodyForm(request.headers.get('content-type') ?? '').kind === 'json';
      const ended = isJson ? await readAhead(this.#candidate, SESSION_SCAN_BYTES_MAX) : null;
      if (ended !== null) return ended;
      const bytes = isJson ? body.bytes : null;
      text = bytes === null ? null : await sessionIn(bytes, body.encodingIn(request.headers));
    }
    const hash = text === null ? null : await sessionHash(table.snapshot.fingerprintKey, text);
    knownSessions.set(body, hash);
    return null;
  }
}

function inHeaders(headers: Headers): string | null {
  for (const name of SESSION_HEADERS) {
    const value = headers.get(name)?.trim() ?? '';
    if (value !== '') return `${name}\n${value.slice(0, HEADER_LENGTH_MAX)}`;
  }
  return null;
}
