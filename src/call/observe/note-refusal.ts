import { directoryOf, type Env } from '../../env.ts';
import { pause, within, steadyClock, type Background } from '../../runtime/async.ts';
import { addRefusals, idOf, RefusalRows } from '../../core/parts/refusal-rows.ts';
import {
  REFUSAL_MINUTE_MS,
  type RefusalCount,
  type ErrorReply,
  type KeylessCaller,
} from '../../contract/reasons.ts';
import { BoundedMap, BoundedSet } from '../../core/parts/bounded-map.ts';
import { logEvent } from '../../runtime/log.ts';
import { isolateConfig } from '../../config/isolate-config.ts';
import { shownWords } from '../../upstream/refusal/refusal-words.ts';
import { readCredentials } from '../../upstream/transfer/credentials.ts';
import { holdsGatewayKey } from '../../upstream/transfer/tokens.ts';
import { splitPath, nothingFound, type FoundFacts } from '../request/call.ts';

/**
 * Counts refusals by Headgate, and served calls of callers without a gateway key, so that an operator can see which
 * callers would be locked out if one were required. Code that answers with a Headgate error calls `noteRefusal`. The
 * sums of this isolate are sent to the directory and logged behind the calls, and never delay one.
 */

/** A flush that is this late has ended with its request. */
const LOST_MS = 5_000;

/** Cloudflare ends work 30 s after the response. A flush that is due later is left to a later call. */
const DELAY_MS_MAX = 20_000;

interface FlushPace {
  /** Time from the first request for a flush to the flush, in milliseconds. */
  readonly firstMs: number;
  /** Minimum time between two flushes, in milliseconds. */
  readonly everyMs: number;
  readonly flush: (env: Env) => Promise<void>;
}

/** Flushes the counts of an isolate behind its calls, rarely enough to cost them nothing. */
export class BehindCalls {
  readonly #pace: FlushPace;
  #flushedAt = -Infinity;
  #pendingUntil = -Infinity;

  constructor(pace: FlushPace) {
    this.#pace = pace;
  }

  /** Schedules a flush, unless one is pending. */
  soon({ env, ctx }: { readonly env: Env; readonly ctx: Background }, now: number): void {
    if (now < this.#pendingUntil) return;
    const { firstMs, everyMs, flush } = this.#pace;
    const delayMs = Math.max(firstMs, this.#flushedAt + everyMs - now);
    if (delayMs > DELAY_MS_MAX) return;
    const dueAt = now + delayMs;
    this.#pendingUntil = dueAt + LOST_MS;
    const run = (): Promise<void> => {
      this.#pendingUntil = -Infinity;
      this.#flushedAt = dueAt;
      return flush(env);
    };
    ctx.waitUntil(pause(delayMs).then(run));
  }
}

/** Maximum rows between two flushes, not counting those with only a reason and an upstream. */
const ROWS_MAX = 256;

export type RefusedCallCount = Omit<
  RefusalCount,
  'count' | 'first_at' | 'last_at' | 'message' | 'request_ids'
> & {
  readonly requestId: string | null;
  /** Makes the message that is kept. Only the first call of a row needs one. */
  readonly message: () => string;
};

/** Sums of refused calls by minute, until they are flushed. */
export class RefusalSums {
  #rows = new RefusalRows(ROWS_MAX);
  #sums = new Map<string, RefusalCount>();

  get isEmpty(): boolean {
    return this.#sums.size === 0;
  }

  note({ requestId, message, ...facts }: RefusedCallCount, now: number): void {
    // The cast is sound: a row has the reason of its calls.
    const row = this.#rows.place(facts) as typeof facts;
    const at = new Date(now).toISOString();
    const id = nameOf(row, at);
    const known = this.#sums.get(id);
    this.#add(id, {
      ...row,
      count: 1,
      first_at: at,
      last_at: at,
      message: known === undefined ? message() : known.message,
      request_ids: requestId === null ? [] : [requestId],
    });
  }

  /** Restores sums that could not be flushed, as far as there is room. */
  putBack(counts: readonly RefusalCount[]): void {
    for (const one of counts) {
      const id = nameOf(one, one.first_at);
      if (this.#sums.has(id) || this.#sums.size < 2 * ROWS_MAX) this.#add(id, one);
    }
  }

  /** Returns all sums and starts again at zero. */
  take(): RefusalCount[] {
    const taken = [...this.#sums.values()];
    this.#sums = new Map();
    this.#rows = new RefusalRows(ROWS_MAX);
    return taken;
  }

  #add(id: string, one: RefusalCount): void {
    const known = this.#sums.get(id);
    this.#sums.set(id, known === undefined ? one : { ...one, ...addRefusals(known, one) });
  }
}

function nameOf(row: Parameters<typeof idOf>[0], at: string): string {
  return `${Math.floor(Date.parse(at) / REFUSAL_MINUTE_MS)} ${idOf(row)}`;
}

/** Minimum time between two lines with the same facts. */
const LOGGED_EVERY_MS = 60_000;

/** Maximum lines of one flush, except the first one of each reason. The rest share one line. */
const LINES_MAX = 20;

/** Maximum facts whose last line is remembered. */
const REMEMBERED_MAX = 512;

interface LastLine {
  readonly at: number;
  readonly leftOut: number;
}

const lastLines = new BoundedMap<string, LastLine>(REMEMBERED_MAX);

/** Logs refused calls: one line a minute for the same facts, with the number of calls since the previous line. */
export function logRefusals(counts: readonly RefusalCount[], now: number): void {
  let lines = 0;
  let others = 0;
  const reasons = new Set<string>();
  for (const one of counts.toSorted((a, b) => b.count - a.count)) {
    const id = idOf(one);
    const last = lastLines.get(id);
    const count = one.count + (last?.leftOut ?? 0);
    if (last !== undefined && now - last.at < LOGGED_EVERY_MS) {
      lastLines.set(id, { at: last.at, leftOut: count });
    } else if (lines < LINES_MAX || !reasons.has(one.reason)) {
      lines += 1;
      reasons.add(one.reason);
      lastLines.set(id, { at: now, leftOut: 0 });
      const { reason, key, team, group, upstream, model, message } = one;
      logEvent('call_refused', { reason, key, team, group, upstream, model, count, message });
    } else {
      others += one.count;
    }
  }
  if (others > 0) logEvent('calls_refused', { count: others });
}

/** Time from the first refusal to the flush, and minimum time between two flushes. */
const FIRST_MS = 1_000;
const EVERY_MS = 10_000;

const ANSWER_MS_MAX = 5_000;

const MODEL_LENGTH_MAX = 100;

/** Headers that may contain the id of a request, and the form of an id. */
const REQUEST_ID_HEADERS = ['x-request-id', 'x-client-request-id', 'cf-ray'] as const;
const REQUEST_ID = /^[\w.:+/=-]{1,64}$/;

export interface RefusedRequest {
  readonly request: Pick<Request, 'headers' | 'url'>;
  readonly env: Env;
  readonly ctx: Background;
}

const sums = new RefusalSums();
const behind = new BehindCalls({ firstMs: FIRST_MS, everyMs: EVERY_MS, flush: flushRefusals });

export function noteRefusal(
  refused: RefusedRequest,
  reply: ErrorReply,
  at: FoundFacts = nothingFound(),
): void {
  const now = steadyClock.now();
  sums.note(factsOf(refused, reply, at), now);
  behind.soon(refused, now);
}

async function flushRefusals(env: Env): Promise<void> {
  if (sums.isEmpty) return;
  const counts = sums.take();
  logRefusals(counts, steadyClock.now());
  try {
    await within(ANSWER_MS_MAX, directoryOf(env).noteRefusals(counts));
  } catch (error) {
    logEvent('directory_unreachable', { error: String(error) });
    // They are sent with the next ones.
    sums.putBack(counts);
  }
}

function factsOf(
  refused: RefusedRequest,
  reply: ErrorReply,
  { caller, located, placements }: FoundFacts,
): RefusedCallCount {
  const { reason, about = {} } = reply;
  const gatewayKey = about.key ?? caller?.key ?? null;
  const fingerprint = caller?.fingerprint ?? null;
  return {
    reason,
    key: gatewayKey?.id ?? fingerprint,
    key_kind: gatewayKey !== null ? 'gateway' : fingerprint === null ? null : 'provider',
    team: gatewayKey?.team ?? null,
    // Narrowest first, so the last one represents the provider.
    group: about.group ?? placements.at(-1)?.group ?? null,
    upstream: about.upstream ?? located?.upstream.id ?? upstreamIn(refused.request.url),
    model: modelOf(located?.model ?? null),
    requestId: requestIdOf(refused.request.headers),
    message: () => messageOf(refused.request, reply),
  };
}

/** The configured upstream that a URL names. null if there is none, as on the unified routes. */
function upstreamIn(url: string): string | null {
  const { id } = splitPath(new URL(url).pathname);
  return isolateConfig.copy?.upstreams.has(id) === true ? id : null;
}

function modelOf(model: string | null): string | null {
  if (model === null || holdsGatewayKey(model)) return null;
  return model.slice(0, MODEL_LENGTH_MAX).replaceAll(/\p{C}/gu, ' ');
}

function requestIdOf(headers: Headers): string | null {
  for (const name of REQUEST_ID_HEADERS) {
    const id = headers.get(name);
    if (id !== null && REQUEST_ID.test(id)) return id;
  }
  return null;
}

/** A message may quote what the caller sent, and a caller may send its key in the wrong place. */
function messageOf({ headers, url }: RefusedRequest['request'], { message }: ErrorReply): string {
  const { gatewayKey, providerKey } = readCredentials(headers, new URL(url).searchParams);
  let shown = message;
  for (const secret of [gatewayKey, providerKey]) {
    if (secret !== null && secret !== '') shown = shown.replaceAll(secret, '…');
  }
  return shownWords(shown) ?? '';
}

/** Maximum callers between two flushes. Further ones are counted together for each upstream. */
const CALLERS_MAX = 256;

interface Count {
  calls: number;
  lastAt: number;
}

let keylessCounts = new Map<string, Map<string, Count>>();
let callers = 0;

/** A caller that is new here is reported soon, and its further calls within a minute. */
const ofNew = new BehindCalls({ firstMs: 1_000, everyMs: 10_000, flush: flushKeyless });
const ofKnown = new BehindCalls({ firstMs: 1_000, everyMs: 60_000, flush: flushKeyless });

const KNOWN_MAX = 2_000;

const knownCallers = new BoundedSet<string>(KNOWN_MAX);

export function noteIfKeyless(
  call: Pick<RefusedRequest, 'env' | 'ctx'>,
  { caller, located }: FoundFacts,
  status: number,
): void {
  if (caller === null || caller.key !== null || located === null || status >= 400) return;
  const now = steadyClock.now();
  const { id } = located.upstream;
  const name = caller.fingerprint ?? 'anonymous';
  const isNew = countKeyless(id, name, 1, now) && !knownCallers.has(`${id} ${name}`);
  if (isNew) knownCallers.add(`${id} ${name}`);
  (isNew ? ofNew : ofKnown).soon(call, now);
}

/** Adds calls. Returns whether they are the first ones of the caller since the last flush. */
function countKeyless(upstream: string, caller: string, calls: number, at: number): boolean {
  const ofUpstream = keylessCounts.get(upstream) ?? new Map<string, Count>();
  keylessCounts.set(upstream, ofUpstream);
  let name = caller;
  let sum = ofUpstream.get(name);
  if (sum === undefined && callers >= CALLERS_MAX) {
    name = '';
    sum = ofUpstream.get(name);
  }
  if (sum === undefined) {
    callers += 1;
    ofUpstream.set(name, { calls, lastAt: at });
    return true;
  }
  sum.calls += calls;
  sum.lastAt = Math.max(sum.lastAt, at);
  return false;
}

async function flushKeyless(env: Env): Promise<void> {
  const taken = keylessCounts;
  keylessCounts = new Map();
  callers = 0;
  if (taken.size === 0) return;
  const rows: KeylessCaller[] = [...taken].flatMap(([upstream, ofUpstream]) =>
    [...ofUpstream].map(([caller, { calls, lastAt }]) => ({
      upstream,
      caller: caller === '' ? null : caller,
      calls,
      last_at: new Date(lastAt).toISOString(),
    })),
  );
  try {
    await within(ANSWER_MS_MAX, directoryOf(env).noteKeyless(rows));
  } catch (error) {
    logEvent('directory_unreachable', { error: String(error) });
    // They are sent with the next ones.
    for (const { upstream, caller, calls, last_at: at } of rows) {
      countKeyless(upstream, caller ?? '', calls, Date.parse(at));
    }
  }
}
