import type { Frame, StrictAnswer } from './strict-answer.ts';
import { CREATED_S, content, framing, jsonAnswer, sseAnswer } from './strict-answer.ts';
import { sseData, sseEvent } from './strict-answer.ts';
import type { StrictPrompt } from './strict-prompt.ts';

/** Everything that an OpenAI-shaped answer is made from. */
export interface AnswerInput {
  readonly prompt: StrictPrompt;
  readonly model: string;
  readonly pieces: readonly string[];
}

const DONE = framing('data: [DONE]\n\n');

function chatUsage({ prompt, pieces }: AnswerInput): Record<string, unknown> {
  return {
    prompt_tokens: prompt.inputTokens,
    completion_tokens: pieces.length,
    total_tokens: prompt.inputTokens + pieces.length,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}

/** Chat completions. */
export function chatAnswer(input: AnswerInput): StrictAnswer {
  const { prompt, model, pieces } = input;
  const id = `chatcmpl-${prompt.digest}`;
  const head = { id, created: CREATED_S, model, system_fingerprint: 'fp_strict' };
  if (prompt.stream !== true) {
    const message = { role: 'assistant', content: pieces.join(''), refusal: null };
    return jsonAnswer({
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
      usage: chatUsage(input),
    });
  }
  const chunk = (delta: object, finish: string | null): string =>
    sseData({
      ...head,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      ...(prompt.includeUsage && { usage: null }),
    });
  return sseAnswer(function* () {
    yield framing(chunk({ role: 'assistant', content: '' }, null));
    for (const piece of pieces) yield content(chunk({ content: piece }, null));
    yield framing(chunk({}, 'stop'));
    if (prompt.includeUsage) {
      const usage = chatUsage(input);
      yield framing(sseData({ ...head, object: 'chat.completion.chunk', choices: [], usage }));
    }
    yield DONE;
  });
}

/** The older completions. */
export function completionsAnswer(input: AnswerInput): StrictAnswer {
  const { prompt, model, pieces } = input;
  const head = {
    id: `cmpl-${prompt.digest}`,
    object: 'text_completion',
    created: CREATED_S,
    model,
  };
  const choice = (text: string, finish: string | null): object => ({
    ...head,
    choices: [{ text, index: 0, logprobs: null, finish_reason: finish }],
  });
  if (prompt.stream !== true) {
    return jsonAnswer({ ...choice(pieces.join(''), 'stop'), usage: chatUsage(input) });
  }
  return sseAnswer(function* () {
    for (const piece of pieces) yield content(sseData(choice(piece, null)));
    yield framing(sseData(choice('', 'stop')));
    yield DONE;
  });
}

function responseObject(input: AnswerInput, output: readonly object[], done: boolean): object {
  const { prompt, model, pieces } = input;
  return {
    id: `resp_${prompt.digest}`,
    object: 'response',
    created_at: CREATED_S,
    status: done ? 'completed' : 'in_progress',
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model,
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: false,
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    usage: done
      ? {
          input_tokens: prompt.inputTokens,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: pieces.length,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: prompt.inputTokens + pieces.length,
        }
      : null,
    user: null,
    metadata: {},
  };
}

function* responseFrames(input: AnswerInput): Generator<Frame> {
  const { prompt, pieces } = input;
  const id = `msg_${prompt.digest}`;
  const at = { item_id: id, output_index: 0, content_index: 0 };
  const text = pieces.join('');
  const item = (status: string, parts: readonly object[]): object => ({
    id,
    type: 'message',
    status,
    role: 'assistant',
    content: parts,
  });
  const part = (value: string): object => ({ type: 'output_text', text: value, annotations: [] });
  let sequence = 0;
  const event = (type: string, fields: object): string =>
    sseEvent({ type, sequence_number: sequence++, ...fields });
  const started = responseObject(input, [], false);
  yield framing(event('response.created', { response: started }));
  yield framing(event('response.in_progress', { response: started }));
  const added = { output_index: 0, item: item('in_progress', []) };
  yield framing(event('response.output_item.added', added));
  yield framing(event('response.content_part.added', { ...at, part: part('') }));
  for (const delta of pieces) {
    yield content(event('response.output_text.delta', { ...at, delta, logprobs: [] }));
  }
  yield framing(event('response.output_text.done', { ...at, text, logprobs: [] }));
  yield framing(event('response.content_part.done', { ...at, part: part(text) }));
  const finished = item('completed', [part(text)]);
  yield framing(event('response.output_item.done', { output_index: 0, item: finished }));
  const response = responseObject(input, [finished], true);
  yield framing(event('response.completed', { response }));
}

/** Responses. */
export function responsesAnswer(input: AnswerInput): StrictAnswer {
  const { prompt, pieces } = input;
  if (prompt.stream === true) return sseAnswer(() => responseFrames(input));
  const parts = [{ type: 'output_text', text: pieces.join(''), annotations: [] }];
  const id = `msg_${prompt.digest}`;
  const message = { id, type: 'message', status: 'completed', role: 'assistant', content: parts };
  return jsonAnswer(responseObject(input, [message], true));
}

/** Embeddings: eight numbers per input, as floats or, where asked for, in base64. */
export function embeddingsAnswer({ prompt, model }: AnswerInput): StrictAnswer {
  const given = prompt.json['input'];
  const inputs: unknown[] = Array.isArray(given) ? given : [given];
  const data = inputs.map((value, index) => {
    const text = String(value);
    const vector = Float32Array.from({ length: 8 }, (_, i) => (text.charCodeAt(i) || 32) / 128);
    const base64 = prompt.json['encoding_format'] === 'base64';
    const embedding = base64 ? Buffer.from(vector.buffer).toString('base64') : [...vector];
    return { object: 'embedding', index, embedding };
  });
  const tokens = prompt.inputTokens;
  return jsonAnswer({
    object: 'list',
    data,
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  });
}

/** Image generation. */
export function imagesAnswer({ prompt }: AnswerInput): StrictAnswer {
  const image = Buffer.from(`image of ${prompt.words.join(' ')}`).toString('base64');
  return jsonAnswer({ created: CREATED_S, data: [{ b64_json: image }] });
}
