import type { StrictFrame, StrictAnswer, StrictUsage } from './answer.ts';
import { CREATED_S, content, framing, jsonAnswer, sseAnswer } from './answer.ts';
import { sseData, sseEvent } from './answer.ts';
import type { StrictPrompt } from './prompt.ts';

/** Everything that an OpenAI-shaped answer is made from. */
export interface AnswerInput {
  readonly prompt: StrictPrompt;
  readonly model: string;
  readonly pieces: readonly string[];
  readonly usage: StrictUsage;
}

/** Counts the tokens of all pieces up to the one at `index`; the last one carries the rest. */
export function tokensUpTo({ usage, pieces }: AnswerInput, index: number): number {
  return Math.floor((usage.output * (index + 1)) / pieces.length);
}

/** The tokens that the piece at `index` carries. */
export const tokensOf = (input: AnswerInput, index: number): number =>
  tokensUpTo(input, index) - (index === 0 ? 0 : tokensUpTo(input, index - 1));

const OVERLOADED = {
  message: 'The server is overloaded. Please try again later.',
  type: 'server_error',
  param: null,
  code: 'server_is_overloaded',
};
const FAILED_WHOLE = JSON.stringify({ error: OVERLOADED });
const FAILURE = `event: error\n${sseData({ error: OVERLOADED })}`;

/** The tier of service, where answers report it. */
const tierOf = ({ usage }: AnswerInput): object =>
  usage.tier === undefined ? {} : { service_tier: usage.tier };

const DONE = framing('data: [DONE]\n\n');

function chatUsage({ usage }: AnswerInput): Record<string, unknown> {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cached },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}

/** Chat completions. */
export function chatAnswer(input: AnswerInput): StrictAnswer {
  const { prompt, model, pieces } = input;
  const id = `chatcmpl-${prompt.digest}`;
  const head = {
    id,
    created: CREATED_S,
    model,
    system_fingerprint: 'fp_strict',
    ...tierOf(input),
  };
  if (prompt.stream !== true) {
    const message = { role: 'assistant', content: pieces.join(''), refusal: null };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }];
    const body = { ...head, object: 'chat.completion', choices, usage: chatUsage(input) };
    return { ...jsonAnswer(body, input.usage.output), failure: () => FAILED_WHOLE };
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
    for (const [i, piece] of pieces.entries()) {
      yield content(chunk({ content: piece }, null), tokensOf(input, i));
    }
    yield framing(chunk({}, 'stop'));
    if (prompt.includeUsage) {
      const usage = chatUsage(input);
      yield framing(sseData({ ...head, object: 'chat.completion.chunk', choices: [], usage }));
    }
    yield DONE;
  }, FAILURE);
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
    const body = { ...choice(pieces.join(''), 'stop'), usage: chatUsage(input) };
    return jsonAnswer(body, input.usage.output);
  }
  return sseAnswer(function* () {
    for (const [i, piece] of pieces.entries()) {
      yield content(sseData(choice(piece, null)), tokensOf(input, i));
    }
    yield framing(sseData(choice('', 'stop')));
    if (prompt.includeUsage) {
      yield framing(sseData({ ...head, choices: [], usage: chatUsage(input) }));
    }
    yield DONE;
  }, FAILURE);
}

function responseObject(input: AnswerInput, output: readonly object[], done: boolean): object {
  const { prompt, model, usage } = input;
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
    ...tierOf(input),
    store: false,
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    usage: done
      ? {
          input_tokens: usage.input,
          input_tokens_details: { cached_tokens: usage.cached },
          output_tokens: usage.output,
          output_tokens_details: { reasoning_tokens: usage.reasoning },
          total_tokens: usage.input + usage.output,
        }
      : null,
    user: null,
    metadata: {},
  };
}

function* responseFrames(input: AnswerInput): Generator<StrictFrame> {
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
  for (const [i, delta] of pieces.entries()) {
    const fields = { ...at, delta, logprobs: [] };
    yield content(event('response.output_text.delta', fields), tokensOf(input, i));
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
  if (prompt.stream === true) {
    const { code, message, param } = OVERLOADED;
    const failure = sseEvent({ type: 'error', code, message, param });
    return sseAnswer(() => responseFrames(input), failure);
  }
  const parts = [{ type: 'output_text', text: pieces.join(''), annotations: [] }];
  const id = `msg_${prompt.digest}`;
  const message = { id, type: 'message', status: 'completed', role: 'assistant', content: parts };
  return jsonAnswer(responseObject(input, [message], true), input.usage.output);
}

/** Embeddings: eight numbers per input, as floats or, where asked for, in base64. */
export function embeddingsAnswer({ prompt, model, usage }: AnswerInput): StrictAnswer {
  const given = prompt.json['input'];
  const inputs: unknown[] = Array.isArray(given) ? given : [given];
  const data = inputs.map((value, index) => {
    const text = String(value);
    const vector = Float32Array.from({ length: 8 }, (_, i) => (text.charCodeAt(i) || 32) / 128);
    const base64 = prompt.json['encoding_format'] === 'base64';
    const embedding = base64 ? Buffer.from(vector.buffer).toString('base64') : [...vector];
    return { object: 'embedding', index, embedding };
  });
  const tokens = usage.input;
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
