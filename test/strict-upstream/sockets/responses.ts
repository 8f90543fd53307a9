import type { StrictFrame } from '../answer.ts';
import { Grant, decide } from '../admission.ts';
import type { CountedCall } from '../counts.ts';
import { accountOf } from '../credential.ts';
import { makeAnswer } from '../dialects.ts';
import { errorBody } from '../errors.ts';
import { checkFailure, withFault } from '../failures.ts';
import type { StrictPrompt } from '../prompt.ts';
import type { StrictBehaviour } from '../settings.ts';
import { usageFor } from '../usage.ts';
import { pause } from '../writer.ts';
import type { SocketPeer } from './peer.ts';
import type { Json } from './turn.ts';
import { promptOf, readJson, sendTurn } from './turn.ts';

const ROUTE = { operation: 'responses', dialect: 'openai', model: null, counted: true } as const;

/** The lane of a turn: turns of one lane run one after the other, lanes side by side. */
const laneOf = (message: Json): string => JSON.stringify(message['stream_id'] ?? null);

const withLane = (message: Json, event: object): string =>
  JSON.stringify(
    message['stream_id'] === undefined ? event : { ...event, stream_id: message['stream_id'] },
  );

const eventOf = ({ data }: StrictFrame): Record<string, unknown> =>
  JSON.parse(String(data).slice(String(data).indexOf('data: ') + 6)) as Record<string, unknown>;

/** An error of a turn, which ends it. */
function errorEvent(
  message: Json,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): string {
  const { error } = body as { error: object };
  return withLane(message, { type: 'error', status, error: { ...error, headers }, headers });
}

/** The events of a turn, the last of which says how it ended. */
function eventsOf(message: Json, prompt: StrictPrompt, behaviour: StrictBehaviour): StrictFrame[] {
  const warmsUp = message['generate'] === false;
  const chunks = warmsUp ? 0 : behaviour.chunks;
  const usage = usageFor({ ...behaviour, chunks }, prompt, true);
  const { frames } = makeAnswer({ route: ROUTE, query: '', prompt, chunks, models: [], usage });
  const all = [...frames()];
  return all.map((frame, i) => {
    const event = eventOf(frame);
    const isIncomplete = behaviour.incomplete && i === all.length - 1;
    return { ...frame, data: withLane(message, isIncomplete ? incompleteOf(event) : event) };
  });
}

function incompleteOf(completed: Json): Json {
  const reason = { incomplete_details: { reason: 'max_output_tokens' }, status: 'incomplete' };
  const response = { ...(completed['response'] as object), ...reason };
  return { ...completed, type: 'response.incomplete', response };
}

function failedOf(message: Json, events: readonly StrictFrame[]): string {
  const last = JSON.parse(String(events.at(-1)?.data)) as Json;
  const error = { code: 'server_error', message: 'The model failed to generate a response.' };
  const response = { ...(last['response'] as object), status: 'failed', error };
  return withLane(message, { ...last, type: 'response.failed', response });
}

/** The Responses API over a WebSocket: each `response.create` is a call. */
export function serveResponses(peer: SocketPeer): void {
  const lanes = new Map<string, Promise<void>>();
  peer.socket.onMessage((data) => {
    const message = readJson(data);
    if (message?.['type'] !== 'response.create') {
      const refused = errorEvent(message ?? {}, 400, errorBody('openai', 400));
      void peer.socket.send(refused).catch(() => {});
      return;
    }
    const lane = laneOf(message);
    const turn = beginTurn(peer, message);
    const before = lanes.get(lane) ?? Promise.resolve();
    lanes.set(
      lane,
      before.then(() => turn()).catch(() => {}),
    );
  });
}

/** Counts a turn as it arrives, and decides; what is returned answers it once its lane is free. */
function beginTurn(peer: SocketPeer, message: Json): () => Promise<void> {
  const { socket, key, endpoint } = peer;
  const { scope, seen } = socket;
  const prompt = promptOf(message);
  const asked = peer.behaviourNow(prompt.asked);
  const call = scope.counts.arrive(seen.path, key, scope.settings);
  call.ofSocket('turns', scope.settings);
  const account = accountOf(scope, key);
  if (typeof account === 'string') call.ofAccount(account, scope.settings);
  const model = prompt.model ?? endpoint.model;
  call.named(model, prompt.label, scope.settings);
  const failure = asked.fail ?? (call.overLimit === null ? scope.failures.take() : null);
  if (failure !== null) checkFailure(failure);
  const usage = usageFor(asked, prompt, true);
  const { maxOutputTokens } = prompt;
  const asking = { call, scope, model, dialect: 'openai', usage, maxOutputTokens } as const;
  const outcome = decide({ ...asking, behaviour: asked, failure });
  const behaviour = withFault(asked, failure);
  const over = (how: 'done' | 'aborted' | 'broken'): void => {
    if (outcome instanceof Grant) outcome.settle();
    call.end(how, behaviour.accountingLagMs);
  };
  peer.onEnd(() => over(seen.closedBy === 'upstream' ? 'broken' : 'aborted'));
  const resumed = scope.waitForResume();
  return () => answerTurn(peer, { message, prompt, behaviour, outcome, over, resumed, call });
}

interface ResponsesTurn {
  readonly message: Json;
  readonly prompt: StrictPrompt;
  readonly behaviour: StrictBehaviour;
  readonly outcome: ReturnType<typeof decide>;
  readonly over: (how: 'done' | 'broken') => void;
  readonly resumed: () => Promise<void>;
  readonly call: CountedCall;
}

async function answerTurn({ socket }: SocketPeer, turn: ResponsesTurn): Promise<void> {
  const { message, prompt, behaviour, outcome, over, resumed } = turn;
  const { gone } = socket;
  if (!(outcome instanceof Grant)) {
    over('done');
    await socket.send(errorEvent(message, outcome.status, outcome.body, outcome.headers));
    return;
  }
  await pause(behaviour.firstByteDelayMs, gone);
  if (behaviour.resetBeforeHeaders) {
    socket.cut();
    return;
  }
  if (behaviour.status !== null) {
    over('done');
    await socket.send(errorEvent(message, behaviour.status, errorBody('openai', behaviour.status)));
    return;
  }
  const events = eventsOf(message, prompt, behaviour);
  await sendTurn(socket, events, {
    behaviour,
    gone,
    resumed,
    failure: failedOf(message, events),
    onLast: () => over('done'),
    onTokens: (tokens) => outcome.produce(tokens),
  });
}
