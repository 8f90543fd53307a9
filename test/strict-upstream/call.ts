import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Grant, decide, headersNow } from './admission.ts';
import { jsonAnswer, sseEvent } from './answer.ts';
import type { StrictAnswer, StrictUsage } from './answer.ts';
import { bytesAnswer, seededHash, writtenAnswer } from './bytes.ts';
import { accountOf, keyOf } from './credential.ts';
import { control, readBody, sendJson } from './control.ts';
import type { CountedCall } from './counts.ts';
import { makeAnswer } from './dialects.ts';
import { egressAnswer } from './egress.ts';
import { errorBody } from './errors.ts';
import { checkFailure, withFault } from './failures.ts';
import { refuseInside } from './inside.ts';
import type { StrictPrompt } from './prompt.ts';
import { readPrompt } from './prompt.ts';
import type { RefusalForm } from './refusal.ts';
import type { StrictRoute } from './route.ts';
import { recogniseRoute } from './route.ts';
import type { StrictScope } from './scope.ts';
import type { StrictBehaviour } from './settings.ts';
import { behaviourOf } from './settings.ts';
import { usageFor } from './usage.ts';
import { encodingOf, packWhole, pause, Sink, writeAnswer } from './writer.ts';

const MODELS_LISTED = ['gpt-4o-mini', 'claude-haiku-4-5', 'gemini-2.5-flash'];

/** One request on its way through the strict upstream. */
interface StrictExchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly scope: StrictScope;
  readonly path: string;
  readonly query: string;
  readonly route: StrictRoute;
  readonly call: CountedCall | null;
  readonly gone: AbortSignal;
  /** As the headers ask; once the body was read, as that asks too. */
  behaviour: StrictBehaviour;
  /** Amounts that the call has taken of the rate limits; null: nothing yet, or it does not count. */
  grant: Grant | null;
  /** Ends the call before its last bytes go out: who has them is right to take it for over. */
  readonly onLast: () => void;
  readonly resumed: () => Promise<void>;
}

function echoOf({ req, path, query }: StrictExchange, body: Buffer): unknown {
  return {
    method: req.method,
    path,
    query,
    headers: req.headers,
    bodyBytes: body.length,
    sha256: createHash('sha256').update(body).digest('hex'),
  };
}

function sendError(
  { res, behaviour, onLast }: StrictExchange,
  status: number,
  body: unknown,
): void {
  if (behaviour.retryAfterS !== null) res.setHeader('retry-after', behaviour.retryAfterS);
  onLast();
  const encoding = encodingOf(behaviour);
  if (encoding === null) {
    sendJson(res, status, body);
    return;
  }
  res.writeHead(status, { 'content-type': 'application/json', 'content-encoding': encoding });
  res.end(packWhole(Buffer.from(JSON.stringify(body)), behaviour));
}

/** Answers that have no body of a model: a reset, a redirect, 204, an error. True: it was one. */
function answeredShort(exchange: StrictExchange, onBreak: () => void): boolean {
  const { res, behaviour, route } = exchange;
  if (behaviour.resetBeforeHeaders) {
    onBreak();
    res.socket?.resetAndDestroy();
  } else if (behaviour.redirect !== null) {
    res.writeHead(302, { location: behaviour.redirect }).end();
  } else if (behaviour.noContent) {
    res.writeHead(204).end();
  } else if (behaviour.egressRefused !== null) {
    const { status, headers, body } = egressAnswer(behaviour.egressRefused, route.dialect);
    const contentLength = { 'content-length': Buffer.byteLength(body) };
    res.writeHead(status, { ...headers, ...contentLength }).end(body);
  } else if (behaviour.status !== null) {
    sendError(exchange, behaviour.status, errorBody(route.dialect, behaviour.status));
  } else return false;
  return true;
}

const usageOf = ({ behaviour, route }: StrictExchange, prompt: StrictPrompt): StrictUsage =>
  usageFor(behaviour, prompt, route.operation !== 'embeddings');

function answerOf(exchange: StrictExchange, prompt: StrictPrompt, body: Buffer): StrictAnswer {
  const { behaviour, route, query, scope } = exchange;
  if (behaviour.echo) return jsonAnswer(echoOf(exchange, body));
  if (behaviour.bytes !== null) return bytesAnswer(behaviour.bytes, 'application/octet-stream');
  const written = scope.settings.answer;
  if (written !== null) return writtenAnswer(written.body, written.contentType);
  const limited = Object.keys(scope.settings.limits);
  const models = limited.length > 0 ? limited : MODELS_LISTED;
  const usage = usageOf(exchange, prompt);
  return makeAnswer({ route, query, prompt, chunks: behaviour.chunks, models, usage });
}

/** Grants a call that counts, or says with which refusal it is answered. */
function admitted(exchange: StrictExchange, prompt: StrictPrompt): RefusalForm | null {
  const { call, scope, route, behaviour } = exchange;
  if (call === null) return null;
  const model = route.model ?? prompt.model;
  call.named(model, prompt.label, scope.settings);
  const failure = behaviour.fail ?? (call.overLimit === null ? scope.failures.take() : null);
  if (failure !== null) checkFailure(failure);
  const { maxOutputTokens } = prompt;
  const { dialect } = route;
  const usage = usageOf(exchange, prompt);
  const outcome = decide({
    call,
    scope,
    model,
    dialect,
    usage,
    maxOutputTokens,
    behaviour,
    failure,
  });
  if (!(outcome instanceof Grant)) return outcome;
  exchange.grant = outcome;
  exchange.behaviour = withFault(behaviour, failure);
  return null;
}

function runAnswer({ req, path, scope }: StrictExchange, body: Buffer) {
  const { runs, runLimit } = scope.settings;
  const asked = { method: req.method ?? 'GET', path, body: body.toString('utf8') };
  return runs ? scope.runs.answer(asked, runLimit) : null;
}

/** Streams a run until it is over, as long as its client stays. */
async function streamRun(
  { res, scope, gone, behaviour }: StrictExchange,
  run: object,
): Promise<void> {
  const { id, status } = run as { id: string; status: string };
  const event = (type: string, response: object): string =>
    sseEvent({ type: `response.${type}`, sequence_number: 0, response });
  const encoding = encodingOf(behaviour);
  res.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    ...(encoding !== null && { 'content-encoding': encoding }),
  });
  const sink = new Sink(res, behaviour);
  const type = status === 'queued' ? 'created' : 'in_progress';
  await sink.write(event(type, { ...run, status: 'queued' }), gone);
  const left = new Promise<null>((resolve) => {
    gone.addEventListener('abort', () => resolve(null), { once: true });
  });
  const over = await Promise.race([scope.runs.ended(id), left]);
  if (over === null) return;
  await sink.write(event((over as { status: string }).status, over), gone);
  await sink.end();
}

async function answer(exchange: StrictExchange, prompt: StrictPrompt, body: Buffer): Promise<void> {
  const { res, route, query, call, scope, gone } = exchange;
  const refused = admitted(exchange, prompt);
  const { behaviour, grant } = exchange;
  if (refused === null) await pause(behaviour.firstByteDelayMs, gone);
  const limits = call === null ? {} : headersNow(scope, route.model ?? prompt.model, route.dialect);
  for (const [name, value] of Object.entries(limits)) res.setHeader(name, value);
  if (refused !== null) {
    for (const [name, value] of Object.entries(refused.headers)) res.setHeader(name, value);
    if (behaviour.refusesInside) {
      exchange.onLast();
      return refuseInside(res, refused.body, { route, query, isStream: prompt.stream });
    }
    const inArray = route.operation === 'generate_stream' && !query.includes('alt=sse');
    sendError(exchange, refused.status, inArray ? [refused.body] : refused.body);
    return;
  }
  const ran = runAnswer(exchange, body);
  if (ran !== null) {
    const isStream =
      ran.status === 200 && (query.includes('stream=true') || prompt.stream === true);
    return isStream
      ? streamRun(exchange, ran.body as object)
      : sendError(exchange, ran.status, ran.body);
  }
  const onBreak = (): void => call?.end('broken', behaviour.accountingLagMs);
  if (answeredShort(exchange, onBreak)) return;
  res.setHeader('x-request-id', `req_${prompt.digest}`);
  res.setHeader('request-id', `req_${prompt.digest}`);
  if (behaviour.bytes !== null) res.setHeader('x-strict-sha256', seededHash(behaviour.bytes));
  await writeAnswer(res, answerOf(exchange, prompt, body), {
    behaviour,
    gone,
    resumed: exchange.resumed,
    onBreak,
    onLast: exchange.onLast,
    onTokens: (tokens) => grant?.produce(tokens),
  });
}

function open(
  scope: StrictScope,
  target: string,
  req: IncomingMessage,
  res: ServerResponse,
): StrictExchange {
  const [path = '/', query = ''] = target.split('?', 2);
  const method = req.method ?? 'GET';
  const route = recogniseRoute(method, path, req.headers['anthropic-version'] !== undefined);
  const key = keyOf(req.headers);
  const account = accountOf(scope, key);
  const { settings } = scope;
  const ofKey = key === null ? undefined : settings.byKey[key];
  const asked = behaviourOf({ ...settings, ...ofKey }, req.headers);
  const behaviour = account === undefined ? { ...asked, status: 401 } : asked;
  const counted = behaviour.count ?? route.counted;
  const call = counted ? scope.counts.arrive(path, key, settings) : null;
  if (!counted) scope.counts.uncounted += 1;
  if (typeof account === 'string') {
    call?.ofAccount(account, scope.settings);
    const { accountHeader } = scope.settings;
    if (accountHeader !== null) res.setHeader(accountHeader, account);
  }
  const gone = new AbortController();
  const end = (how: 'done' | 'aborted'): void => {
    exchange.grant?.settle();
    call?.end(how, exchange.behaviour.accountingLagMs);
  };
  const exchange: StrictExchange = {
    req,
    res,
    scope,
    path,
    query,
    route,
    call,
    gone: gone.signal,
    behaviour,
    grant: null,
    onLast: () => end('done'),
    resumed: scope.waitForResume(),
  };
  // `finish`: the last byte is with the kernel. `close` without it: the client left, or we cut it.
  res.once('finish', () => end('done'));
  const left = (): void => {
    end('aborted');
    gone.abort();
  };
  if (res.closed) left();
  else res.once('close', left);
  return exchange;
}

/** The body, which is kept with the rest of the request if the scope keeps them. */
async function received({ req, scope }: StrictExchange, target: string): Promise<Buffer> {
  const request = { target, rawHeaders: req.rawHeaders, chunks: [] as Buffer[], isWhole: false };
  if (scope.settings.keepsRequests) scope.received.push(request);
  const body = await readBody(req, request.chunks);
  request.isWhole = true;
  return body;
}

/** Answers one request, a provider's or one of the controls. */
export async function handleCall(
  scope: StrictScope,
  target: string,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  if (target.startsWith('/__strict/')) {
    await control(scope, target.slice('/__strict/'.length), req, res);
    return;
  }
  const exchange = open(scope, target, req, res);
  try {
    const body = await received(exchange, target);
    const prompt = readPrompt(req.headers, body);
    exchange.gone.throwIfAborted();
    exchange.behaviour = behaviourOf(exchange.behaviour, prompt.asked);
    await answer(exchange, prompt, body);
  } catch (error) {
    // Every wait ends with an error when the client is gone; that is no failure of ours.
    if (res.destroyed || exchange.gone.aborted) return;
    if (res.headersSent) res.destroy();
    else sendJson(res, 500, { error: String(error) });
  }
}
