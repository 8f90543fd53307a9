import type { StrictFrame } from '../answer.ts';
import { content, framing } from '../answer.ts';
import type { StrictPrompt } from '../prompt.ts';
import { answerPieces } from '../prompt.ts';
import { usageFor } from '../usage.ts';
import type { StrictUsage } from '../answer.ts';
import type { SocketPeer } from './peer.ts';
import type { Json } from './turn.ts';
import { promptOf, readJson, sendTurn } from './turn.ts';

const usageObject = ({ input, cached, output }: StrictUsage): object => ({
  total_tokens: input + output,
  input_tokens: input,
  output_tokens: output,
  input_token_details: { text_tokens: input, audio_tokens: 0, cached_tokens: cached },
  output_token_details: { text_tokens: output, audio_tokens: 0 },
});

const limitsUpdated = JSON.stringify({
  type: 'rate_limits.updated',
  rate_limits: [{ name: 'requests', limit: 1_000, remaining: 999, reset_seconds: 60 }],
});

/** The Realtime API of OpenAI and Azure: the whole WebSocket is a call, with one response at a time. */
export class RealtimePeer {
  readonly #peer: SocketPeer;
  #item: Json = {};
  #responses = 0;
  /** Ends the response that is under way; null: none is. */
  #cancel: AbortController | null = null;

  constructor(peer: SocketPeer) {
    this.#peer = peer;
    const session = { id: 'sess_strict', object: 'realtime.session', model: peer.endpoint.model };
    this.#send({ type: 'session.created', session });
    peer.socket.onMessage((data) => this.#take(readJson(data) ?? {}));
  }

  #send(event: Json): void {
    void this.#peer.socket.send(JSON.stringify(event)).catch(() => {});
  }

  #take(message: Json): void {
    switch (message['type']) {
      case 'session.update':
        return this.#send({ type: 'session.updated', session: message['session'] });
      case 'conversation.item.create':
        this.#item = message['item'] as Json;
        return this.#send({ type: 'conversation.item.added', item: this.#item });
      case 'input_audio_buffer.append':
        return;
      case 'input_audio_buffer.commit':
        return this.#send({ type: 'input_audio_buffer.committed', item_id: 'item_strict' });
      case 'response.cancel':
        return this.#cancel?.abort();
      case 'response.create':
        if (this.#cancel === null) return void this.#respond().catch(() => {});
        return this.#refuse('conversation_already_has_active_response');
      default:
        return this.#refuse('unknown_event');
    }
  }

  #refuse(code: string): void {
    const error = {
      type: 'invalid_request_error',
      code,
      message: `Refused: ${code}.`,
      param: null,
    };
    this.#send({ type: 'error', event_id: 'event_strict', error });
  }

  async #respond(): Promise<void> {
    const { socket, endpoint } = this.#peer;
    const prompt = promptOf({ model: endpoint.model, input: [this.#item] });
    const cancel = new AbortController();
    this.#cancel = cancel;
    const id = `resp_${(this.#responses += 1)}`;
    const behaviour = this.#peer.behaviourNow(prompt.asked);
    const usage = usageFor(behaviour, prompt, true);
    const done = (status: string): Json => ({
      type: 'response.done',
      response: { id, object: 'realtime.response', status, usage: usageObject(usage) },
    });
    const frames = this.#frames(id, prompt, usage, behaviour.chunks);
    try {
      await sendTurn(socket, [...frames, framing(JSON.stringify(done('completed')))], {
        behaviour,
        gone: AbortSignal.any([socket.gone, cancel.signal]),
        resumed: socket.scope.waitForResume(),
        failure: JSON.stringify(done('failed')),
        onLast: () => (this.#cancel = null),
        onTokens: (tokens) => this.#peer.produce(tokens),
      });
      await socket.send(limitsUpdated);
    } catch (error) {
      this.#cancel = null;
      if (socket.gone.aborted || !cancel.signal.aborted) throw error;
      this.#send(done('cancelled'));
    }
  }

  #frames(id: string, prompt: StrictPrompt, usage: StrictUsage, chunks: number): StrictFrame[] {
    const at = { response_id: id, item_id: `item_${id}`, output_index: 0, content_index: 0 };
    const event = (type: string, fields: object): string => JSON.stringify({ type, ...fields });
    const pieces = answerPieces(prompt, prompt.model ?? 'strict', chunks);
    const created = { id, object: 'realtime.response', status: 'in_progress', output: [] };
    const deltas = pieces.map((delta, i) =>
      content(
        event('response.output_text.delta', { ...at, delta }),
        i === 0 ? usage.output - pieces.length + 1 : 1,
      ),
    );
    return [
      framing(event('response.created', { response: created })),
      ...deltas,
      framing(event('response.output_text.done', { ...at, text: pieces.join('') })),
    ];
  }
}
