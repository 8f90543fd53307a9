import type { StrictAnswer } from './answer.ts';
import type { StrictUsage } from './answer.ts';
import { content, framing, jsonAnswer, sseAnswer, sseEvent } from './answer.ts';
import { bytesAnswer } from './bytes.ts';
import type { AnswerInput } from './openai.ts';
import * as openai from './openai.ts';
import { tokensOf, tokensUpTo } from './openai.ts';
import type { StrictPrompt } from './prompt.ts';
import { answerPieces } from './prompt.ts';
import type { StrictRoute } from './route.ts';

const CREATED_TEXT = '2026-09-21T14:13:20Z';
const SPEECH_BYTES = 32_768;

const at = (type: string): { readonly type: string; readonly index: number } => ({
  type,
  index: 0,
});

function messagesAnswer(input: AnswerInput): StrictAnswer {
  const { prompt, model, pieces } = input;
  // What is read from a cache is not part of the input here.
  const usage = {
    input_tokens: input.usage.input - input.usage.cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: input.usage.cached,
    output_tokens: input.usage.output,
    ...(input.usage.tier !== undefined && { service_tier: 'standard', speed: input.usage.tier }),
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
  if (prompt.stream !== true) return jsonAnswer(message, usage.output_tokens);
  const error = { type: 'overloaded_error', message: 'Overloaded' };
  return sseAnswer(
    function* () {
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
      for (const [i, text] of pieces.entries()) {
        const delta = { type: 'text_delta', text };
        yield content(sseEvent({ ...at('content_block_delta'), delta }), tokensOf(input, i));
      }
      yield framing(sseEvent(at('content_block_stop')));
      const delta = { stop_reason: 'end_turn', stop_sequence: null };
      yield framing(sseEvent({ type: 'message_delta', delta, usage }));
      yield framing(sseEvent({ type: 'message_stop' }));
    },
    sseEvent({ type: 'error', error }),
  );
}

/** Thoughts come first, and are no part of the candidates. */
function geminiUsage({ input, cached, reasoning }: StrictUsage, output: number): object {
  const thoughts = Math.min(output, reasoning);
  return {
    promptTokenCount: input,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    candidatesTokenCount: output - thoughts,
    ...(reasoning > 0 && { thoughtsTokenCount: thoughts }),
    totalTokenCount: input + output,
  };
}

const GEMINI_OVERLOADED = JSON.stringify({
  error: {
    code: 503,
    message: 'The model is overloaded. Please try again later.',
    status: 'UNAVAILABLE',
  },
});

function geminiAnswer(input: AnswerInput, form: 'one' | 'sse' | 'array'): StrictAnswer {
  const { prompt, model, pieces, usage } = input;
  const part = (text: string, index: number): string =>
    JSON.stringify({
      candidates: [
        {
          content: { parts: [{ text }], role: 'model' },
          ...(index === pieces.length - 1 && { finishReason: 'STOP' }),
          index: 0,
        },
      ],
      usageMetadata: geminiUsage(usage, index < 0 ? usage.output : tokensUpTo(input, index)),
      modelVersion: model,
      responseId: `strict-${prompt.digest}`,
    });
  if (form === 'one') {
    const data = part(pieces.join(''), pieces.length - 1);
    return {
      contentType: 'application/json; charset=UTF-8',
      whole: true,
      frames: () => [content(data, usage.output)],
    };
  }
  if (form === 'sse') {
    return sseAnswer(function* () {
      for (const [i, piece] of pieces.entries()) {
        yield content(`data: ${part(piece, i)}\r\n\r\n`, tokensOf(input, i));
      }
    }, `data: ${GEMINI_OVERLOADED}\r\n\r\n`);
  }
  return {
    contentType: 'application/json; charset=UTF-8',
    whole: false,
    *frames() {
      for (const [i, piece] of pieces.entries()) {
        yield content(`${i === 0 ? '[' : ',\r\n'}${part(piece, i)}`, tokensOf(input, i));
      }
      yield framing(pieces.length === 0 ? '[]' : ']');
    },
    failure: (chunksSent) => `${chunksSent === 0 ? '[' : ',\r\n'}${GEMINI_OVERLOADED}]`,
  };
}

function ollamaAnswer(input: AnswerInput, field: 'message' | 'response'): StrictAnswer {
  const { prompt, model, pieces, usage } = input;
  const line = (text: string, done: boolean): object => ({
    model,
    created_at: CREATED_TEXT,
    [field]: field === 'message' ? { role: 'assistant', content: text } : text,
    done,
    ...(done && {
      done_reason: 'stop',
      total_duration: 1_000_000,
      prompt_eval_count: usage.input,
      eval_count: usage.output,
    }),
  });
  // Ollama streams unless it is told not to.
  if (prompt.stream === false) return jsonAnswer(line(pieces.join(''), true), usage.output);
  return {
    contentType: 'application/x-ndjson',
    whole: false,
    *frames() {
      for (const [i, piece] of pieces.entries()) {
        yield content(`${JSON.stringify(line(piece, false))}\n`, tokensOf(input, i));
      }
      yield framing(`${JSON.stringify(line('', true))}\n`);
    },
    failure: () => '{"error":"an error was encountered while running the model"}\n',
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

/** Facts that an answer is made of, apart from the call's behaviour. */
export interface AnswerRequest {
  readonly route: StrictRoute;
  readonly query: string;
  readonly prompt: StrictPrompt;
  readonly chunks: number;
  readonly usage: StrictUsage;
  /** The models that a list shows. */
  readonly models: readonly string[];
}

/** Makes a call's answer in its dialect. */
export function makeAnswer(request: AnswerRequest): StrictAnswer {
  const { route, query, prompt, chunks, models, usage } = request;
  const model = route.model ?? prompt.model ?? 'strict';
  const input: AnswerInput = { prompt, model, pieces: answerPieces(prompt, model, chunks), usage };
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
      return jsonAnswer({ input_tokens: usage.input });
    case 'generate':
      return geminiAnswer(input, 'one');
    case 'generate_stream':
      return geminiAnswer(input, /(?:^|&)alt=sse(?:&|$)/.test(query) ? 'sse' : 'array');
    case 'gemini_count':
      return jsonAnswer({ totalTokens: usage.input });
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
