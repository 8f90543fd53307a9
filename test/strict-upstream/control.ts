import type { IncomingMessage, ServerResponse } from 'node:http';
import type { StrictFailure } from './failures.ts';
import type { StrictScope } from './scope.ts';
import type { StrictSettings } from './settings.ts';
import { mergeSettings } from './settings.ts';
import type { SocketAct } from './sockets/acts.ts';
import { actOn } from './sockets/acts.ts';

/** Answers with one JSON document. */
export function sendJson(res: ServerResponse, status: number, body: unknown): void {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(JSON.stringify(body));
}

/** Reads a request's body to its end. `chunks` has what came, also where the end never does. */
export async function readBody(req: IncomingMessage, chunks: Buffer[] = []): Promise<Buffer> {
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Does what a control asks for. False: there is none of that name. */
function obey(scope: StrictScope, verb: string, body: string): boolean {
  switch (verb) {
    case 'configure':
      scope.settings = mergeSettings(scope.settings, JSON.parse(body) as Partial<StrictSettings>);
      return true;
    case 'fail-next': {
      const { calls, failure } = JSON.parse(body) as { calls: number; failure: StrictFailure };
      scope.failures.add(calls, failure);
      return true;
    }
    case 'reset':
      scope.reset();
      return true;
    case 'resume':
      scope.resume();
      return true;
    case 'end-run': {
      const { id, status } = JSON.parse(body) as { id?: string; status: string };
      for (const one of id === undefined ? scope.runs.going : [id]) scope.runs.end(one, status);
      return true;
    }
    case 'act':
      actOn(scope, JSON.parse(body) as SocketAct);
      return true;
    default:
      return verb === 'stats';
  }
}

/** The same controls over HTTP, for tests that do not run in this process. */
export async function control(
  scope: StrictScope,
  verb: string,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const body = (await readBody(req)).toString('utf8');
  try {
    const { counts, runs } = scope;
    if (obey(scope, verb, body)) {
      sendJson(res, 200, { ...counts.stats(), runs: { ...runs.tally, going: runs.going } });
    } else sendJson(res, 404, { error: `There is no control named ${verb}.` });
  } catch (error) {
    sendJson(res, 400, { error: String(error) });
  }
}
