import type { Dialect } from '../../contract/http.ts';

export interface TokenUsage {
  /** All of the input, whether it was read from a cache, written to one, or neither. */
  readonly inputTokens: number;
  /** The part of the input that came from a cache. */
  readonly cacheReadTokens: number;
  /** The part of the input that was written to a cache. */
  readonly cacheWriteTokens: number;
  /** The part of the cache writes that is kept for an hour and costs more. Absent if there is none. */
  readonly longCacheWriteTokens?: number;
  /** All of the output, including thinking. */
  readonly outputTokens: number;
}

/**
 * Reads the usage from the part of a response that reports it: the object under `usage`, `usageMetadata`, `meta` or
 * `amazon-bedrock-invocationMetrics`, or an Ollama response. Returns null if it reports none.
 *
 * The names of the fields identify the format. One exception is `input_tokens`, which excludes the cache in responses
 * of Anthropic's shape and includes it elsewhere. The fields are as documented by the providers, or as seen in their
 * responses, in November 2026.
 */
export function usageFromJson(shape: Dialect, value: unknown): TokenUsage | null {
  if (!isFields(value)) return null;
  for (const read of READERS) {
    const usage = read(value, shape);
    if (usage !== null) return usage;
  }
  return null;
}

/** The larger of two reports of one call, number by number. Usage that is reported in pieces only grows. */
export function largerUsage(one: TokenUsage | null, other: TokenUsage | null): TokenUsage | null {
  return one === null || other === null ? (one ?? other) : joined(one, other, Math.max);
}

function joined(
  one: TokenUsage,
  other: TokenUsage,
  join: (a: number, b: number) => number,
): TokenUsage {
  const long = join(one.longCacheWriteTokens ?? 0, other.longCacheWriteTokens ?? 0);
  return {
    inputTokens: join(one.inputTokens, other.inputTokens),
    cacheReadTokens: join(one.cacheReadTokens, other.cacheReadTokens),
    cacheWriteTokens: join(one.cacheWriteTokens, other.cacheWriteTokens),
    ...(long > 0 && { longCacheWriteTokens: long }),
    outputTokens: join(one.outputTokens, other.outputTokens),
  };
}

const READERS: readonly ((
  fields: Readonly<Record<string, unknown>>,
  shape: Dialect,
) => TokenUsage | null)[] = [
  fromCompletion,
  fromInputAndOutput,
  fromGemini,
  fromInteraction,
  fromBedrock,
  fromTokensOrUnits,
  fromCounters,
  fromTotal,
];

/**
 * OpenAI chat, completions and embeddings, and compatible APIs. The input includes the cache, except if gateways report
 * Anthropic's counts separately (Portkey). The output includes thinking, except on xAI.
 */
function fromCompletion(fields: Readonly<Record<string, unknown>>): TokenUsage | null {
  const written = count(fields, 'completion_tokens');
  const output = written ?? 0;
  const total = count(fields, 'total_tokens');
  // Without a count for the prompt, the total includes it.
  const rest = written === null || total === null ? null : Math.max(0, total - output);
  const input = count(fields, 'prompt_tokens') ?? rest;
  if (input === null) return null;
  const details = inner(fields, 'prompt_tokens_details');
  const read = count(fields, 'cache_read_input_tokens');
  const cached = count(fields, 'cache_creation_input_tokens');
  const beside = (read ?? 0) + (cached ?? 0);
  const thinking = largest(
    count(inner(fields, 'completion_tokens_details'), 'reasoning_tokens'),
    count(fields, 'reasoning_tokens'),
  );
  return {
    inputTokens: input + (leavesOutCache({ input, output, total, beside }) ? beside : 0),
    // Several names may be present, and some may be 0.
    cacheReadTokens: largest(
      count(details, 'cached_tokens'),
      // Moonshot, DeepSeek, Mistral, LiteLLM and Portkey.
      count(fields, 'cached_tokens'),
      count(fields, 'prompt_cache_hit_tokens'),
      count(fields, 'num_cached_tokens'),
      count(inner(fields, 'prompt_token_details'), 'cached_tokens'),
      read,
    ),
    cacheWriteTokens: largest(
      count(details, 'cache_write_tokens'),
      count(details, 'cache_creation_tokens'),
      // Alibaba's Qwen.
      count(details, 'cache_creation_input_tokens'),
      cached,
    ),
    ...longWrites(details === null ? null : inner(details, 'cache_creation_token_details')),
    outputTokens: output + (leavesOutThinking({ input, output, total }, thinking) ? thinking : 0),
  };
}

interface ReportedTokens {
  readonly input: number;
  readonly output: number;
  readonly total: number | null;
}

/** Whether cached tokens are reported separately from the input. */
function leavesOutCache({
  input,
  output,
  total,
  beside,
}: ReportedTokens & { readonly beside: number }) {
  return beside > input || (beside > 0 && total === input + beside + output);
}

/** Whether thinking tokens are reported separately from the output. */
function leavesOutThinking({ input, output, total }: ReportedTokens, thinking: number): boolean {
  return thinking > output || total === input + output + thinking;
}

/** Reads the tokens written to a one-hour cache, as reported by Anthropic and LiteLLM. */
function longWrites(
  details: Readonly<Record<string, unknown>> | null,
): Pick<TokenUsage, 'longCacheWriteTokens'> {
  const long = count(details, 'ephemeral_1h_input_tokens') ?? 0;
  return long > 0 ? { longCacheWriteTokens: long } : {};
}

/**
 * Anthropic Messages, and OpenAI Responses, images and transcriptions. If Anthropic ran a call in several steps, such
 * as after a compaction, the top-level numbers are those of the last step.
 */
function fromInputAndOutput(
  fields: Readonly<Record<string, unknown>>,
  shape: Dialect,
): TokenUsage | null {
  const top = fromOneStep(fields, shape);
  const { iterations } = fields;
  if (top === null || !Array.isArray(iterations)) return top;
  const steps = iterations.flatMap((step: unknown) =>
    isFields(step) ? (fromOneStep(step, shape) ?? []) : [],
  );
  const [first, ...others] = steps;
  if (first === undefined) return top;
  return largerUsage(
    top,
    others.reduce((sum, step) => joined(sum, step, (a, b) => a + b), first),
  );
}

function fromOneStep(fields: Readonly<Record<string, unknown>>, shape: Dialect): TokenUsage | null {
  const sent = count(fields, 'input_tokens');
  const written = count(fields, 'output_tokens');
  if (sent === null && written === null) return null;
  const [input, output] = [sent ?? 0, written ?? 0];
  const total = count(fields, 'total_tokens');
  const details = {
    ...inner(fields, 'input_tokens_details'),
    ...inner(fields, 'input_token_details'),
  };
  const creation = inner(fields, 'cache_creation');
  const cacheRead = count(fields, 'cache_read_input_tokens');
  // Some gateways send only one of the two, and 0 for the other.
  const cacheWrite = largest(
    count(fields, 'cache_creation_input_tokens'),
    (count(creation, 'ephemeral_5m_input_tokens') ?? 0) +
      (count(creation, 'ephemeral_1h_input_tokens') ?? 0),
  );
  const beside = (cacheRead ?? 0) + cacheWrite;
  const isBeside =
    shape === 'anthropic' ||
    shape === 'bedrock' ||
    leavesOutCache({ input, output, total, beside });
  const thinking = count(inner(fields, 'output_tokens_details'), 'reasoning_tokens') ?? 0;
  return {
    inputTokens: input + (isBeside ? beside : 0),
    // The longer names are Bifrost's.
    cacheReadTokens: largest(
      cacheRead,
      count(details, 'cached_tokens'),
      count(details, 'cached_read_tokens'),
    ),
    cacheWriteTokens: largest(
      cacheWrite,
      count(details, 'cache_write_tokens'),
      count(details, 'cached_write_tokens'),
    ),
    ...longWrites(creation),
    outputTokens: output + (leavesOutThinking({ input, output, total }, thinking) ? thinking : 0),
  };
}

/** Gemini. Tokens read by its own tools are added to the prompt, and thoughts to the candidates. */
function fromGemini(fields: Readonly<Record<string, unknown>>): TokenUsage | null {
  const input = count(fields, 'promptTokenCount');
  // A live session reports its responses instead.
  const output = count(fields, 'candidatesTokenCount') ?? count(fields, 'responseTokenCount');
  if (input === null && output === null) return null;
  return {
    inputTokens: (input ?? 0) + (count(fields, 'toolUsePromptTokenCount') ?? 0),
    cacheReadTokens: count(fields, 'cachedContentTokenCount') ?? 0,
    cacheWriteTokens: 0,
    outputTokens: (output ?? 0) + (count(fields, 'thoughtsTokenCount') ?? 0),
  };
}

/** Gemini Interactions API. */
function fromInteraction(fields: Readonly<Record<string, unknown>>): TokenUsage | null {
  const input = count(fields, 'total_input_tokens');
  if (input === null) return null;
  return {
    inputTokens: input + (count(fields, 'total_tool_use_tokens') ?? 0),
    cacheReadTokens: count(fields, 'total_cached_tokens') ?? 0,
    cacheWriteTokens: 0,
    outputTokens:
      (count(fields, 'total_output_tokens') ?? 0) + (count(fields, 'total_thought_tokens') ?? 0),
  };
}

/** Bedrock Converse, and the metrics at the end of a model's stream. */
function fromBedrock(fields: Readonly<Record<string, unknown>>): TokenUsage | null {
  const input = count(fields, 'inputTokens') ?? count(fields, 'inputTokenCount');
  const output = count(fields, 'outputTokens') ?? count(fields, 'outputTokenCount');
  if (input === null && output === null) return null;
  const read =
    count(fields, 'cacheReadInputTokens') ?? count(fields, 'cacheReadInputTokenCount') ?? 0;
  const written =
    count(fields, 'cacheWriteInputTokens') ?? count(fields, 'cacheWriteInputTokenCount') ?? 0;
  return {
    inputTokens: (input ?? 0) + read + written,
    cacheReadTokens: read,
    cacheWriteTokens: written,
    ...longWritesOf(fields['cacheDetails']),
    outputTokens: output ?? 0,
  };
}

/** Reads the tokens written to a one-hour cache, as reported by Converse. */
function longWritesOf(details: unknown): Pick<TokenUsage, 'longCacheWriteTokens'> {
  if (!Array.isArray(details)) return {};
  const long = details
    .filter(
      (each): each is Readonly<Record<string, unknown>> => isFields(each) && each['ttl'] === '1h',
    )
    .reduce((sum, each) => sum + (count(each, 'inputTokens') ?? 0), 0);
  return long > 0 ? { longCacheWriteTokens: long } : {};
}

/** Cohere: the tokens that the model read and wrote, or the billed ones if those are missing. */
function fromTokensOrUnits(fields: Readonly<Record<string, unknown>>): TokenUsage | null {
  const tokens = inner(fields, 'tokens') ?? inner(fields, 'billed_units');
  const input = count(tokens, 'input_tokens');
  const output = count(tokens, 'output_tokens');
  if (input === null && output === null) return null;
  return {
    inputTokens: input ?? 0,
    cacheReadTokens: count(fields, 'cached_tokens') ?? 0,
    cacheWriteTokens: 0,
    outputTokens: output ?? 0,
  };
}

/** Ollama, and Llama and Titan on Bedrock: numbers at the top of the response. */
function fromCounters(fields: Readonly<Record<string, unknown>>): TokenUsage | null {
  const input =
    count(fields, 'prompt_eval_count') ??
    count(fields, 'prompt_token_count') ??
    count(fields, 'inputTextTokenCount');
  const output =
    count(fields, 'eval_count') ??
    count(fields, 'generation_token_count') ??
    count(fields, 'totalOutputTextTokenCount');
  if (input === null && output === null) return null;
  return {
    inputTokens: input ?? 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: output ?? 0,
  };
}

/** Embeddings and rankings of Voyage and Jina have only input, and report only the total. */
function fromTotal(fields: Readonly<Record<string, unknown>>): TokenUsage | null {
  const total = count(fields, 'total_tokens');
  if (total === null) return null;
  return { inputTokens: total, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0 };
}

/** A count of tokens. null if it is missing or not a valid count. */
function count(fields: Readonly<Record<string, unknown>> | null, name: string): number | null {
  const value = fields?.[name];
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/** The largest count. 0 if there are none. */
function largest(...counts: readonly (number | null)[]): number {
  return Math.max(0, ...counts.map((each) => each ?? 0));
}

function inner(
  fields: Readonly<Record<string, unknown>>,
  name: string,
): Readonly<Record<string, unknown>> | null {
  const value = fields[name];
  return isFields(value) ? value : null;
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
