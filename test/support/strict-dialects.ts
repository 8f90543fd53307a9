import type { StrictAnswer } from './strict-answer.ts';
import { content, framing, jsonAnswer, sseAnswer, sseEvent } from './strict-answer.ts';
import { bytesAnswer } from './strict-bytes.ts';
import type { AnswerInput } from './strict-openai.ts';
import * as openai from './strict-openai.ts';
import type { StrictPrompt } from './strict-prompt.ts';
import { answerPieces } from './strict-prompt.ts';
import type { StrictRoute } from './strict-route.ts';

const CREATED_TEXT = '2026-09-21T14:13:20Z';
const SPEECH_BYTES = 32_768;

const at = (type: string): { readonly type: string; readonly index: number } => ({
  type,
  index: 0,
});

function messagesAnswer({ prompt, model, pieces }: AnswerInput): StrictAnswer {
  const usage = {
    input_tokens: prompt.inputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: pieces.length,
  };
  const message = {
    id: `msg_${prompt.digest}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [{ type: 'text', text: pieces.join('') }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage,
  };
  if (prompt.stream !== true) return jsonAnswer(message);
  return sseAnswer(function* () {
    const opening = {
      ...message,
      content: [],
      stop_reason: null,
      usage: { ...usage, output_tokens: 1 },
    };
    const block = { type: 'text', text: '' };
    yield framing(sseEvent({ type: 'message_start', message: opening }));
    yield framing(sseEvent({ ...at('content_block_start'), content_block: block }));
    yield framing(sseEvent({ type: 'ping' }));
    for (const text of pieces) {
      const delta = { type: 'text_delta', text };
      yield content(sseEvent({ ...at('content_block_delta'), delta }));
    }
    yield framing(sseEvent(at('content_block_stop')));
    const delta = { stop_reason: 'end_turn', stop_sequence: null };
    yield framing(sseEvent({ type: 'message_delta', delta, usage }));
    yield framing(sseEvent({ type: 'message_stop' }));
  });
}

function geminiAnswer(
  { prompt, model, pieces }: AnswerInput,
  form: 'one' | 'sse' | 'array',
): StrictAnswer {
  const part = (text: string, count: number): string =>
    JSON.stringify({
      candidates: [
        {
          content: { parts: [{ text }], role: 'model' },
          ...(count === pieces.length && { finishReason: 'STOP' }),
          index: 0,
        },
      ],
      usageMetadata: {
        promptTokenCount: prompt.inputTokens,
        candidatesTokenCount: count,
        totalTokenCount: prompt.inputTokens + count,
      },
      modelVersion: model,
      responseId: `strict-${prompt.digest}`,
    });
  if (form === 'one') {
    const data = part(pieces.join(''), pieces.length);
    return {
      contentType: 'application/json; charset=UTF-8',
      whole: true,
      frames: () => [content(data)],
    };
  }
  if (form === 'sse') {
    return sseAnswer(function* () {
      for (const [i, piece] of pieces.entries()) {
        yield content(`data: ${part(piece, i + 1)}\r\n\r\n`);
      }
    });
  }
  return {
    contentType: 'application/json; charset=UTF-8',
    whole: false,
    *frames() {
      for (const [i, piece] of pieces.entries()) {
        yield content(`${i === 0 ? '[' : ',\r\n'}${part(piece, i + 1)}`);
      }
      yield framing(pieces.length === 0 ? '[]' : ']');
    },
  };
}

function ollamaAnswer(
  { prompt, model, pieces }: AnswerInput,
  field: 'message' | 'response',
): StrictAnswer {
  const line = (text: string, done: boolean): object => ({
    model,
    created_at: CREATED_TEXT,
    [field]: field === 'message' ? { role: 'assistant', content: text } : text,
    done,
    ...(done && {
      done_reason: 'stop',
      total_duration: 1_000_000,
      prompt_eval_count: prompt.inputTokens,
      eval_count: pieces.length,
    }),
  });
  // Ollama streams unless it is told not to.
  if (prompt.stream === false) return jsonAnswer(line(pieces.join(''), true));
  return {
    contentType: 'application/x-ndjson',
    whole: false,
    *frames() {
      for (const piece of pieces) yield content(`${JSON.stringify(line(piece, false))}\n`);
      yield framing(`${JSON.stringify(line('', true))}\n`);
    },
  };
}

function modelsAnswer(dialect: StrictRoute['dialect'], models: readonly string[]): StrictAnswer {
  if (dialect === 'anthropic') {
    const data = models.map((id) => ({
      type: 'model',
      id,
      display_name: id,
      created_at: CREATED_TEXT,
    }));
    return jsonAnswer({ data, has_more: false, first_id: models[0], last_id: models.at(-1) });
  }
  if (dialect === 'gemini') {
    return jsonAnswer({ models: models.map((id) => ({ name: `models/${id}`, displayName: id })) });
  }
  const data = models.map((id) => ({
    id,
    object: 'model',
    created: 1_790_000_000,
    owned_by: 'strict',
  }));
  return jsonAnswer({ object: 'list', data });
}

/** What a call is answered with, apart from its behaviour. */
export interface AnswerRequest {
  readonly route: StrictRoute;
  readonly query: string;
  readonly prompt: StrictPrompt;
  readonly chunks: number;
  /** The models that a list shows. */
  readonly models: readonly string[];
}

/** Makes a call's answer in its dialect. */
export function makeAnswer({ route, query, prompt, chunks, models }: AnswerRequest): StrictAnswer {
  const model = route.model ?? prompt.model ?? 'strict';
  const input: AnswerInput = { prompt, model, pieces: answerPieces(prompt, model, chunks) };
  switch (route.operation) {
    case 'chat':
      return openai.chatAnswer(input);
    case 'completions':
      return openai.completionsAnswer(input);
    case 'responses':
      return openai.responsesAnswer(input);
    case 'embeddings':
      return openai.embeddingsAnswer(input);
    case 'images':
      return openai.imagesAnswer(input);
    case 'transcriptions':
      return jsonAnswer({ text: input.pieces.join('') });
    case 'speech':
      return bytesAnswer(SPEECH_BYTES, 'audio/mpeg');
    case 'messages':
      return messagesAnswer(input);
    case 'count_tokens':
      return jsonAnswer({ input_tokens: prompt.inputTokens });
    case 'generate':
      return geminiAnswer(input, 'one');
    case 'generate_stream':
      return geminiAnswer(input, /(?:^|&)alt=sse(?:&|$)/.test(query) ? 'sse' : 'array');
    case 'gemini_count':
      return jsonAnswer({ totalTokens: prompt.inputTokens });
    case 'ollama_chat':
      return ollamaAnswer(input, 'message');
    case 'ollama_generate':
      return ollamaAnswer(input, 'response');
    case 'models':
      return modelsAnswer(route.dialect, models);
    case 'unknown':
      return jsonAnswer({ ok: true, text: input.pieces.join('') });
  }
}
