import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { jsonAnswer } from './strict-answer.ts';
import type { StrictAnswer } from './strict-answer.ts';
import { bytesAnswer, seededHash } from './strict-bytes.ts';
import type { CountedCall } from './strict-counts.ts';
import { makeAnswer } from './strict-dialects.ts';
import { errorBody, refusalBody } from './strict-errors.ts';
import type { StrictPrompt } from './strict-prompt.ts';
import { readPrompt } from './strict-prompt.ts';
import type { StrictRoute } from './strict-route.ts';
import { recogniseRoute } from './strict-route.ts';
import type { StrictScope } from './strict-scope.ts';
import type { StrictBehaviour, StrictSettings } from './strict-settings.ts';
import { behaviourOf, mergeSettings } from './strict-settings.ts';
import { pause, writeAnswer } from './strict-writer.ts';

const MODELS_LISTED = ['gpt-4o-mini', 'claude-haiku-4-5', 'gemini-2.5-flash'];

/** One request on its way through the strict upstream. */
interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly scope: StrictScope;
  readonly path: string;
  readonly query: string;
  readonly route: StrictRoute;
  readonly behaviour: StrictBehaviour;
  readonly call: CountedCall | null;
  readonly gone: AbortSignal;
}

function sendJson(res: ServerResponse, status: number, body: unknown): void {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(JSON.stringify(body));
}

async function readBody(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** The same controls over HTTP, for tests that do not run in this process. */
async function control(
  scope: StrictScope,
  verb: string,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const body = (await readBody(req)).toString('utf8');
  if (verb === 'configure') {
    try {
      scope.settings = mergeSettings(scope.settings, JSON.parse(body) as Partial<StrictSettings>);
    } catch (error) {
      sendJson(res, 400, { error: String(error) });
      return;
    }
  } else if (verb === 'reset') scope.reset();
  else if (verb === 'resume') scope.resume();
  else if (verb !== 'stats') {
    sendJson(res, 404, { error: `There is no control named ${verb}.` });
    return;
  }
  sendJson(res, 200, scope.counts.stats());
}

function echoOf({ req, path, query }: Exchange, body: Buffer): unknown {
  return {
    method: req.method,
    path,
    query,
    headers: req.headers,
    bodyBytes: body.length,
    sha256: createHash('sha256').update(body).digest('hex'),
  };
}

function sendError({ res, behaviour }: Exchange, status: number, body: unknown): void {
  if (behaviour.retryAfterS !== null) res.setHeader('retry-after', behaviour.retryAfterS);
  sendJson(res, status, body);
}

/** Answers that have no body of a model: a reset, a redirect, 204, an error. True: it was one. */
function answeredShort(exchange: Exchange, onBreak: () => void): boolean {
  const { res, behaviour, route } = exchange;
  if (behaviour.resetBeforeHeaders) {
    onBreak();
    res.socket?.resetAndDestroy();
  } else if (behaviour.redirect !== null) {
    res.writeHead(302, { location: behaviour.redirect }).end();
  } else if (behaviour.noContent) {
    res.writeHead(204).end();
  } else if (behaviour.status !== null) {
    sendError(exchange, behaviour.status, errorBody(route.dialect, behaviour.status));
  } else return false;
  return true;
}

function answerOf(exchange: Exchange, prompt: StrictPrompt, body: Buffer): StrictAnswer {
  const { behaviour, route, query, scope } = exchange;
  if (behaviour.echo) return jsonAnswer(echoOf(exchange, body));
  if (behaviour.bytes !== null) return bytesAnswer(behaviour.bytes, 'application/octet-stream');
  const limited = Object.keys(scope.settings.limits);
  const models = limited.length > 0 ? limited : MODELS_LISTED;
  return makeAnswer({ route, query, prompt, chunks: behaviour.chunks, models });
}

async function answer(exchange: Exchange, prompt: StrictPrompt, body: Buffer): Promise<void> {
  const { res, route, query, behaviour, call, scope, gone } = exchange;
  if (call !== null && call.overLimit !== null) {
    const style = scope.settings.refusal ?? route.dialect;
    const refused = refusalBody(style, route.model ?? prompt.model, call.overLimit);
    const inArray = route.operation === 'generate_stream' && !query.includes('alt=sse');
    sendError(exchange, 429, inArray ? [refused] : refused);
    return;
  }
  await pause(behaviour.firstByteDelayMs, gone);
  const onBreak = (): void => call?.end('broken', behaviour.accountingLagMs);
  if (answeredShort(exchange, onBreak)) return;
  res.setHeader('x-request-id', `req_${prompt.digest}`);
  res.setHeader('request-id', `req_${prompt.digest}`);
  if (behaviour.bytes !== null) res.setHeader('x-strict-sha256', seededHash(behaviour.bytes));
  const resumed = (): Promise<void> => scope.untilResumed();
  await writeAnswer(res, answerOf(exchange, prompt, body), { behaviour, gone, resumed, onBreak });
}

function open(
  scope: StrictScope,
  target: string,
  req: IncomingMessage,
  res: ServerResponse,
): Exchange {
  const [path = '/', query = ''] = target.split('?', 2);
  const method = req.method ?? 'GET';
  const route = recogniseRoute(method, path, req.headers['anthropic-version'] !== undefined);
  const behaviour = behaviourOf(scope.settings, req.headers);
  const counted = behaviour.count ?? route.counted;
  const call = counted ? scope.counts.arrive(path, scope.settings) : null;
  if (!counted) scope.counts.uncounted += 1;
  const gone = new AbortController();
  const lagMs = behaviour.accountingLagMs;
  // `finish`: the last byte is with the kernel. `close` without it: the client left, or we cut it.
  res.once('finish', () => call?.end('done', lagMs));
  res.once('close', () => {
    call?.end('aborted', lagMs);
    gone.abort();
  });
  return { req, res, scope, path, query, route, behaviour, call, gone: gone.signal };
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
    const body = await readBody(req);
    const prompt = readPrompt(req.headers, body);
    exchange.call?.named(exchange.route.model ?? prompt.model, prompt.label);
    await answer(exchange, prompt, body);
  } catch (error) {
    // Every wait ends with an error when the client is gone; that is no failure of ours.
    if (res.destroyed || exchange.gone.aborted) return;
    if (res.headersSent) res.destroy();
    else sendJson(res, 500, { error: String(error) });
  }
}
