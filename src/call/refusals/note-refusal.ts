/**
 * Counts refusals by Headgate. Code that answers with a Headgate error calls `noteRefusal`. The sums of this isolate
 * are sent to the directory and logged behind the calls, and never delay one.
 */
import type { ErrorReply } from '../../contract/reasons.ts';
import { directoryOf, type Env } from '../../env.ts';
import { isolateConfig } from '../../config/isolate-config.ts';
import { within, type Background } from '../../runtime/async.ts';
import { logEvent } from '../../runtime/log.ts';
import { steadyClock } from '../../runtime/clock.ts';
import { shownWords } from '../../upstream/refusal/refusal-words.ts';
import { readCredentials } from '../../upstream/transfer/credentials.ts';
import { holdsGatewayKey } from '../../upstream/transfer/tokens.ts';
import { splitPath } from '../called-url.ts';
import { BehindCalls } from './behind-calls.ts';
import { nothingFound, type FoundFacts } from './found-facts.ts';
import { logRefusals } from './refusal-log.ts';
import { RefusalSums, type RefusedCallCount } from './refusal-sums.ts';

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
const behind = new BehindCalls({ firstMs: FIRST_MS, everyMs: EVERY_MS, flush });

export function noteRefusal(
  refused: RefusedRequest,
  reply: ErrorReply,
  at: FoundFacts = nothingFound(),
): void {
  const now = steadyClock.now();
  sums.note(factsOf(refused, reply, at), now);
  behind.soon(refused, now);
}

async function flush(env: Env): Promise<void> {
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
