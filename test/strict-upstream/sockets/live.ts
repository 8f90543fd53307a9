import type { StrictFrame } from '../answer.ts';
import { content, framing } from '../answer.ts';
import { answerPieces } from '../prompt.ts';
import { usageFor } from '../usage.ts';
import type { SocketPeer } from './peer.ts';
import type { Json } from './turn.ts';
import { promptOf, readJson, sendTurn } from './turn.ts';

/** Gemini's Live API, whose messages are JSON in binary ones. The whole WebSocket is a call. */
export class LivePeer {
  readonly #peer: SocketPeer;
  #model: string | null = null;
  /** Turns run one after the other. */
  #turns: Promise<void> = Promise.resolve();

  constructor(peer: SocketPeer) {
    this.#peer = peer;
    peer.socket.onMessage((data) => this.#take(readJson(data) ?? {}));
  }

  #take(message: Json): void {
    const { socket } = this.#peer;
    if (this.#model === null) {
      const { setup } = message as { setup?: { model?: string } };
      const model = setup?.model?.replace(/^models\//, '');
      if (model === undefined) socket.close(1007, 'The first message must be a setup.');
      else this.#setUp(model);
      return;
    }
    const { clientContent, realtimeInput } = message as {
      clientContent?: { turns?: unknown; turnComplete?: boolean };
      realtimeInput?: { text?: string };
    };
    const text = realtimeInput?.text;
    const spoken = text === undefined ? undefined : [{ role: 'user', parts: [{ text }] }];
    const contents = clientContent?.turnComplete === true ? clientContent.turns : spoken;
    if (contents === undefined) return;
    this.#turns = this.#turns.then(() => this.#respond(contents)).catch(() => {});
  }

  #setUp(model: string): void {
    if (!this.#peer.named(model)) return;
    this.#model = model;
    const { socket } = this.#peer;
    void socket.send(Buffer.from(JSON.stringify({ setupComplete: {} }))).catch(() => {});
  }

  async #respond(contents: unknown): Promise<void> {
    const { socket } = this.#peer;
    const prompt = promptOf({ model: this.#model, contents });
    const behaviour = this.#peer.behaviourNow(prompt.asked);
    const usage = usageFor(behaviour, prompt, true);
    const usageMetadata = {
      promptTokenCount: usage.input,
      responseTokenCount: usage.output,
      totalTokenCount: usage.input + usage.output,
    };
    const pieces = answerPieces(prompt, this.#model ?? 'strict', behaviour.chunks);
    const frames: StrictFrame[] = pieces.map((text, i) => {
      const modelTurn = { role: 'model', parts: [{ text }] };
      const tokens = i === 0 ? usage.output - pieces.length + 1 : 1;
      return content(JSON.stringify({ serverContent: { modelTurn } }), tokens);
    });
    const last = JSON.stringify({ serverContent: { turnComplete: true }, usageMetadata });
    const generated = framing(JSON.stringify({ serverContent: { generationComplete: true } }));
    await sendTurn(socket, [...frames, generated, framing(last)], {
      behaviour: { ...behaviour, binary: true },
      gone: socket.gone,
      resumed: socket.scope.waitForResume(),
      failure: JSON.stringify({ serverContent: { interrupted: true } }),
      onLast: () => {},
      onTokens: (tokens) => this.#peer.produce(tokens),
    });
  }
}
