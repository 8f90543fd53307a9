import type { CutReason, LeaseOutcome } from '../../core/words/outcome.ts';
import {
  isFailure,
  NO_FRAME,
  SocketPipe,
  type SocketEnd,
} from '../../upstream/socket/socket-pipe.ts';
import type { HeldCall } from '../../upstream/transfer/held-call.ts';
import { callerResponseHeaders } from '../../upstream/transfer/headers.ts';
import type { Candidate } from '../plan.ts';
import { dropWhenUnread } from './drop-unread.ts';
import { sessionLook } from './may-go-on.ts';
import { openSockets } from './open-sockets.ts';
import { sessionGuard } from './session-guard.ts';
import type { SocketUsage } from './socket-usage.ts';

export interface Opened {
  readonly held: HeldCall;
  readonly answer: Response;
  readonly socket: WebSocket;
}

interface SocketSession {
  /** The 101 for its caller. */
  readonly response: Response;
  /** Resolves once the upstream has released it. */
  readonly done: Promise<SessionEnd>;
}

interface SessionEnd {
  readonly outcome: LeaseOutcome;
  /** Why Headgate ended it. null if one of its sides did. */
  readonly cutBy: CutReason | null;
}

/**
 * Carries a session between its caller and its upstream while it holds its slot. `usage` is null if usage is not
 * counted.
 */
export function carrySession(
  { held, answer, socket }: Opened,
  candidate: Candidate,
  usage: SocketUsage | null,
): SocketSession {
  const { call, rules } = candidate;
  const { after, ctx } = call;
  const guard = sessionGuard(candidate);
  const { client, server } = socketPair();
  const pipe = new SocketPipe(server, {
    after,
    idleMs: rules.hold.idleMs,
    onCaller: (frame) => {
      const objection = guard === null ? null : guard(frame);
      if (objection === null) upstream.send(frame);
      else pipe.cut(objection.reason, objection.why);
    },
  });
  const upstream = pipe.join(socket, {
    breakUpstream: () => held.giveUp(),
    ...(usage !== null && {
      onUpstream: (frame) => {
        usage.read(frame);
        pipe.toCaller(frame);
      },
    }),
  });
  held.endWith((reason) => pipe.cut(reason));
  const stopLooking = openSockets.watch(
    { cut: (reason) => held.cut(reason), whyEnd: sessionLook(candidate) },
    after,
  );
  const done = pipe.done.then((end) => {
    stopLooking();
    held.giveUp();
    dropWhenUnread(pipe, ctx, after);
    return readEnd(end);
  });
  return { response: switched(answer, client), done };
}

/** The 101 that gives a caller its end of a pair. */
export function switched(answer: Response, webSocket: WebSocket): Response {
  const headers = callerResponseHeaders(new Headers(answer.headers));
  return new Response(null, { status: 101, webSocket, headers });
}

/** Makes two connected sockets. One is returned with the answer, and the other one is used here. */
export function socketPair(): { readonly client: WebSocket; readonly server: WebSocket } {
  const { 0: client, 1: server } = new WebSocketPair();
  return { client, server };
}

function readEnd({ by, code }: SocketEnd): SessionEnd {
  if (by === 'upstream') return { outcome: isFailure(code) ? 'failed' : 'success', cutBy: null };
  if (by !== 'caller') return { outcome: 'cancelled', cutBy: by };
  return { outcome: code === NO_FRAME ? 'cancelled' : 'success', cutBy: null };
}
