import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';

const text = (type: string, fields: object): string => JSON.stringify({ type, ...fields });

/** Deltas of one answer of Responses. */
const DELTAS = 300;

const delta = (i: number): string =>
  text('response.output_text.delta', {
    sequence_number: i,
    item_id: 'msg_0a1b2c3d4e5f60718293a4b5c6d7e8f9',
    output_index: 0,
    content_index: 0,
    delta: ' water',
    logprobs: [],
    obfuscation: 'k3Jd9sLq0P',
  });

const response = (status: string): object => ({
  response: {
    id: 'resp_0a1b2c3d4e5f60718293a4b5c6d7e8f9',
    object: 'response',
    status,
    model: 'gpt-5',
    output: [],
    usage: { input_tokens: 120, output_tokens: DELTAS, total_tokens: 120 + DELTAS },
  },
});

/** The events of one answer, as the upstream sends them. */
export const ANSWER_EVENTS: readonly string[] = [
  text('response.created', response('in_progress')),
  ...Array.from({ length: DELTAS }, (_, i) => delta(i)),
  text('response.completed', response('completed')),
];

/** The work of the connections of one slice. */
export interface FrameLoad {
  readonly title: string;
  /** Path behind an upstream's own. */
  readonly path: string;
  readonly connections: number;
  /** The messages that each connection sends, once more for every `answers` that it got. */
  readonly message: string | Buffer;
  readonly answers: number;
}

export const LOADS: readonly FrameLoad[] = [
  {
    title: 'Sessions, texts of 300 bytes, back and forth',
    path: '/v1/realtime?model=gpt-realtime',
    connections: 32,
    message: text('input_text', { text: 'w'.repeat(268) }),
    answers: 1,
  },
  {
    title: 'Sessions, 4 KiB of bytes, back and forth',
    path: '/v1/realtime?model=gpt-realtime',
    connections: 32,
    message: Buffer.alloc(4_096, 'a'),
    answers: 1,
  },
  {
    title: `Responses, turns of ${ANSWER_EVENTS.length} events`,
    path: '/v1/responses',
    connections: 16,
    message: text('response.create', { model: 'gpt-5', input: 'How much water?' }),
    answers: ANSWER_EVENTS.length,
  },
];

export interface FrameTiming {
  readonly rounds: number;
  readonly warmUpMs: number;
  readonly measuredMs: number;
}

/** Runs a load for a while. Answers how many messages passed, either way, between the two marks. */
export async function runFrames(
  base: string,
  load: FrameLoad,
  { warmUpMs, measuredMs }: FrameTiming,
  mark: () => void,
): Promise<number> {
  let passed = 0;
  const connect = async (): Promise<WebSocket> => {
    const headers = { authorization: 'Bearer sk-bench' };
    const socket = new WebSocket(base + load.path, { perMessageDeflate: false, headers });
    let got = 0;
    socket.on('message', () => {
      passed += 1;
      got += 1;
      if (got % load.answers !== 0) return;
      passed += 1;
      socket.send(load.message);
    });
    await once(socket, 'open');
    return socket;
  };
  const sockets = await Promise.all(Array.from({ length: load.connections }, connect));
  for (const socket of sockets) socket.send(load.message);
  await delay(warmUpMs);
  const before = passed;
  mark();
  await delay(measuredMs);
  mark();
  const count = passed - before;
  for (const socket of sockets) socket.removeAllListeners('message').close();
  await Promise.all(sockets.map((socket) => once(socket, 'close')));
  return count;
}
