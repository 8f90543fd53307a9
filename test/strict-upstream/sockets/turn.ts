import type { StrictFrame } from '../answer.ts';
import type { StrictPrompt } from '../prompt.ts';
import { readPrompt } from '../prompt.ts';
import type { StrictBehaviour } from '../settings.ts';
import { pause, silence } from '../writer.ts';
import type { StrictSocket } from './socket.ts';

export type Json = Readonly<Record<string, unknown>>;

/** Reads a message as an object; null: it is none. */
export function readJson(data: string | Buffer): Json | null {
  try {
    const value: unknown = JSON.parse(data.toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Json)
      : null;
  } catch {
    return null;
  }
}

/** The prompt of a turn, read as the body of a call would be. */
export const promptOf = (json: Json): StrictPrompt =>
  readPrompt({}, Buffer.from(JSON.stringify({ ...json, stream: true })));

/** How the messages of one turn go out. */
export interface TurnContext {
  readonly behaviour: StrictBehaviour;
  /** Aborted when the turn is over, whatever is left of it. */
  readonly gone: AbortSignal;
  /** Resolves when somebody resumes this scope. */
  readonly resumed: () => Promise<void>;
  /** Message that ends the turn where it is to fail. */
  readonly failure: string;
  /** Called before the last message goes out: who has it is right to take the turn for over. */
  readonly onLast: () => void;
  readonly onTokens: (tokens: number) => void;
}

/** Does what is asked for after so many chunks. False: nothing of the turn is left. */
async function atMark(socket: StrictSocket, sent: number, turn: TurnContext): Promise<boolean> {
  const { behaviour } = turn;
  const { closeCode, closeReason, closeAfterChunks, silentAfterChunks } = behaviour;
  if (silentAfterChunks === sent) await silence(turn);
  if (behaviour.errorAfterChunks === sent) {
    turn.onLast();
    await socket.send(turn.failure);
    return false;
  }
  if (closeCode !== null && (closeAfterChunks ?? 0) === sent) {
    socket.close(closeCode, closeReason);
    return false;
  }
  if (behaviour.breakAfterChunks !== sent) return true;
  socket.cut();
  return false;
}

/** Sends the messages of a turn, at the pace that the behaviour asks for. */
export async function sendTurn(
  socket: StrictSocket,
  frames: readonly StrictFrame[],
  turn: TurnContext,
): Promise<void> {
  const { behaviour, gone } = turn;
  let sent = 0;
  if (!(await atMark(socket, sent, turn))) return;
  for (const [i, frame] of frames.entries()) {
    gone.throwIfAborted();
    turn.onTokens(frame.tokens);
    if (i === frames.length - 1) turn.onLast();
    await socket.send(frame.data as string);
    if (!frame.content) continue;
    sent += 1;
    await pause(behaviour.chunkDelayMs, gone);
    if (!(await atMark(socket, sent, turn))) return;
  }
}
