import type { IncomingMessage } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import { WebSocketServer } from 'ws';
import { Grant, decide } from '../admission.ts';
import type { CountedCall } from '../counts.ts';
import { accountOf } from '../credential.ts';
import { egressAnswer } from '../egress.ts';
import { errorBody } from '../errors.ts';
import { checkFailure, withFault } from '../failures.ts';
import type { RefusalForm } from '../refusal.ts';
import type { StrictScope } from '../scope.ts';
import type { StrictBehaviour } from '../settings.ts';
import { behaviourOf } from '../settings.ts';
import { pause } from '../writer.ts';
import type { SocketEndpoint } from './endpoint.ts';
import { agreedProtocol, keyOfUpgrade, offeredBy, recogniseEndpoint } from './endpoint.ts';
import { serveEcho } from './echo.ts';
import { LivePeer } from './live.ts';
import type { SocketPeer } from './peer.ts';
import { RealtimePeer } from './realtime.ts';
import { serveResponses } from './responses.ts';
import { newSocket } from './seen.ts';
import type { StrictSocketEnd } from './socket.ts';
import { StrictSocket, TellingWebSocket } from './socket.ts';

const MESSAGE_BYTES_MAX = 64 * 1_048_576;

/** One upgrade as the server hands it over. */
interface RawUpgrade {
  readonly req: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** One upgrade on its way through the strict upstream. */
interface Upgrade extends RawUpgrade {
  readonly scope: StrictScope;
  readonly path: string;
  readonly query: string;
  readonly endpoint: SocketEndpoint;
  readonly key: string | null;
  /** The call that the whole WebSocket is; null: it is none. */
  readonly session: UpgradeSession | null;
  /** Called when the WebSocket ends, or its upgrade. */
  readonly ends: ((how: StrictSocketEnd) => void)[];
}

const NO_TOKENS = { input: 0, cached: 0, output: 0, reasoning: 0 };

/** A WebSocket that counts as one call. */
class UpgradeSession {
  readonly #call: CountedCall;
  readonly #scope: StrictScope;
  readonly #endpoint: SocketEndpoint;
  readonly #behaviour: StrictBehaviour;
  #grant: Grant | null = null;

  constructor(
    scope: StrictScope,
    endpoint: SocketEndpoint,
    { key, path }: { readonly key: string | null; readonly path: string },
    behaviour: StrictBehaviour,
  ) {
    this.#scope = scope;
    this.#endpoint = endpoint;
    this.#behaviour = behaviour;
    this.#call = scope.counts.arrive(path, key, scope.settings);
    this.#call.ofSocket('sessions', scope.settings);
    const account = accountOf(scope, key);
    if (typeof account === 'string') this.#call.ofAccount(account, scope.settings);
  }

  /** Names its model and decides. A form: it is refused so. */
  decide(model: string | null, label: string | null): RefusalForm | StrictBehaviour {
    const [call, scope, asked] = [this.#call, this.#scope, this.#behaviour];
    call.named(model, label, scope.settings);
    const failure = asked.fail ?? (call.overLimit === null ? scope.failures.take() : null);
    if (failure !== null) checkFailure(failure);
    const { dialect } = this.#endpoint;
    const asking = { call, scope, model, dialect, usage: NO_TOKENS, maxOutputTokens: 0 };
    const outcome = decide({ ...asking, behaviour: asked, failure });
    if (!(outcome instanceof Grant)) return outcome;
    this.#grant = outcome;
    return withFault(asked, failure);
  }

  /** The model of a WebSocket that is open is known. A form: it has no room. */
  named(model: string): RefusalForm | null {
    const [call, scope] = [this.#call, this.#scope];
    call.named(model, null, scope.settings);
    if (call.overLimit === null) return null;
    const { dialect } = this.#endpoint;
    const asking = { call, scope, model, dialect, usage: NO_TOKENS, maxOutputTokens: 0 };
    const outcome = decide({ ...asking, behaviour: this.#behaviour, failure: null });
    return outcome instanceof Grant ? null : outcome;
  }

  produce(tokens: number): void {
    this.#grant?.produce(tokens);
  }

  end(how: StrictSocketEnd): void {
    this.#grant?.settle();
    this.#call.end(how, this.#behaviour.accountingLagMs);
  }
}

/** Answers an upgrade as a plain request. */
function refuse({ socket }: RawUpgrade, { status, headers, body }: RefusalForm): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const all = {
    'content-type': 'application/json',
    ...headers,
    'content-length': Buffer.byteLength(text),
    connection: 'close',
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${text}`);
}

/** The answer to an upgrade that is not accepted, whatever the limits are; null: nothing speaks against it. */
function refusalAsked(
  { scope, key, endpoint }: Upgrade,
  behaviour: StrictBehaviour,
): RefusalForm | null {
  const { status, redirect, egressRefused, retryAfterS } = behaviour;
  const { dialect } = endpoint;
  if (accountOf(scope, key) === undefined) {
    return { status: 401, headers: {}, body: errorBody(dialect, 401) };
  }
  if (redirect !== null) return { status: 302, headers: { location: redirect }, body: {} };
  if (egressRefused !== null) return egressAnswer(egressRefused, dialect) as RefusalForm;
  if (status === null) return null;
  const headers: Record<string, string> =
    retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) };
  return { status, headers, body: errorBody(dialect, status) };
}

function behaviourNow({
  scope,
  key,
  req,
}: Pick<Upgrade, 'scope' | 'key' | 'req'>): StrictBehaviour {
  const { settings } = scope;
  const ofKey = key === null ? undefined : settings.byKey[key];
  return behaviourOf({ ...settings, ...ofKey }, req.headers);
}

function serve(peer: SocketPeer): void {
  switch (peer.endpoint.kind) {
    case 'responses':
      return serveResponses(peer);
    case 'realtime':
      return void new RealtimePeer(peer);
    case 'live':
      return void new LivePeer(peer);
    case 'echo':
      return serveEcho(peer);
  }
}

function opened(upgrade: Upgrade, socket: TellingWebSocket, behaviour: StrictBehaviour): void {
  const { scope, endpoint, key, path, query, req, session, ends } = upgrade;
  const index = scope.counts.sockets.length;
  const { headers } = req;
  const { protocol } = socket;
  const seen = newSocket({ index, kind: endpoint.kind, path, query, key, headers, protocol });
  scope.counts.sockets.push(seen);
  const onEnd = (how: StrictSocketEnd): void => ends.forEach((end) => end(how));
  const strict = new StrictSocket(scope, socket, req.socket, { seen, behaviour, onEnd });
  serve({
    socket: strict,
    endpoint,
    key,
    behaviourNow: (asked = {}) => behaviourOf(behaviourNow(upgrade), asked),
    onEnd: (then) => void ends.push(then),
    named(model) {
      const refused = session?.named(model) ?? null;
      if (refused !== null) strict.close(1011, 'You exceeded your current quota.');
      return refused === null;
    },
    produce: (tokens) => session?.produce(tokens),
  });
  strict.begin().catch(() => {});
}

function accept(upgrade: Upgrade, behaviour: StrictBehaviour): void {
  const { req, socket, head, endpoint } = upgrade;
  const protocol = agreedProtocol(endpoint, offeredBy(req.headers));
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MESSAGE_BYTES_MAX,
    perMessageDeflate: behaviour.deflate,
    handleProtocols: () => protocol ?? false,
    WebSocket: TellingWebSocket,
  });
  server.handleUpgrade(req, socket as Socket, head, (open) => opened(upgrade, open, behaviour));
}

/** Answers an upgrade to a WebSocket. */
export async function handleUpgrade(
  scope: StrictScope,
  target: string,
  raw: RawUpgrade,
): Promise<void> {
  const { req, socket } = raw;
  if (socket.destroyed) return;
  const [path = '/', query = ''] = target.split('?', 2);
  const endpoint = recogniseEndpoint(path, query);
  const key = keyOfUpgrade(endpoint, req.headers, query);
  const asked = behaviourNow({ scope, key, req });
  const session = endpoint.isSession
    ? new UpgradeSession(scope, endpoint, { key, path }, asked)
    : null;
  const ends = session === null ? [] : [(how: StrictSocketEnd) => session.end(how)];
  const upgrade: Upgrade = { ...raw, scope, path, query, endpoint, key, session, ends };
  const gone = new AbortController();
  socket.once('close', () => {
    session?.end('aborted');
    gone.abort();
  });
  if (scope.settings.keepsRequests) {
    scope.received.push({ target, rawHeaders: req.rawHeaders, chunks: [], isWhole: true });
  }
  const label = req.headers['x-label'];
  const decided =
    session?.decide(endpoint.model, typeof label === 'string' ? label : null) ?? asked;
  const answer = 'body' in decided ? decided : refusalAsked(upgrade, decided);
  try {
    await pause(asked.firstByteDelayMs, gone.signal);
  } catch {
    return;
  }
  if (answer !== null) {
    session?.end('done');
    refuse(raw, answer);
  } else if ((decided as StrictBehaviour).resetBeforeHeaders) {
    session?.end('broken');
    (socket as Socket).resetAndDestroy();
  } else accept(upgrade, decided as StrictBehaviour);
}
