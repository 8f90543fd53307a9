import type { Dialect } from '../../src/contract/dialect.ts';

export type Counts = readonly [
  input: number,
  output: number,
  cacheRead: number,
  cacheWrite: number,
];

/** Reports of usage by provider, and the counts that each means. */
export const REPORTS: readonly (readonly [string, Dialect, object, Counts])[] = [
  [
    'xAI counts thinking beside the completion',
    'openai',
    {
      prompt_tokens: 32,
      completion_tokens: 9,
      total_tokens: 135,
      completion_tokens_details: { reasoning_tokens: 94 },
    },
    [32, 103, 0, 0],
  ],
  [
    "Gemini's OpenAI-compatible route has thinking in the total only, which counts as no output",
    'openai',
    { prompt_tokens: 10, completion_tokens: 5, total_tokens: 110 },
    [10, 5, 0, 0],
  ],
  [
    'OpenAI counts thinking in the completion',
    'openai',
    {
      prompt_tokens: 32,
      completion_tokens: 103,
      total_tokens: 135,
      completion_tokens_details: { reasoning_tokens: 94 },
    },
    [32, 103, 0, 0],
  ],
  [
    'a total that holds something else changes no output',
    'openai',
    { prompt_tokens: 10, completion_tokens: 5, total_tokens: 100_035 },
    [10, 5, 0, 0],
  ],
  [
    'Portkey counts the cache of Claude beside the prompt',
    'openai',
    {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 100_035,
      cache_read_input_tokens: 100_000,
      cache_creation_input_tokens: 20,
      prompt_tokens_details: { cached_tokens: 100_000 },
    },
    [100_030, 5, 100_000, 20],
  ],
  [
    'and does so where the cache is smaller than the prompt',
    'openai',
    {
      prompt_tokens: 1_000,
      completion_tokens: 5,
      total_tokens: 1_305,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 200,
    },
    [1_300, 5, 100, 200],
  ],
  [
    'LiteLLM counts the cache of Claude in the prompt',
    'openai',
    {
      prompt_tokens: 1_300,
      completion_tokens: 5,
      total_tokens: 1_305,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 200,
      prompt_tokens_details: { cached_tokens: 100, cache_creation_tokens: 200 },
    },
    [1_300, 5, 100, 200],
  ],
  [
    'OpenAI counts audio and what was predicted in prompt and completion',
    'openai',
    {
      prompt_tokens: 120,
      completion_tokens: 80,
      total_tokens: 200,
      prompt_tokens_details: { cached_tokens: 64, audio_tokens: 40 },
      completion_tokens_details: { reasoning_tokens: 10, audio_tokens: 50 },
    },
    [120, 80, 64, 0],
  ],
  [
    'the responses of OpenAI count thinking in the output',
    'openai',
    {
      input_tokens: 50,
      input_tokens_details: { cached_tokens: 30 },
      output_tokens: 70,
      output_tokens_details: { reasoning_tokens: 64 },
      total_tokens: 120,
    },
    [50, 70, 30, 0],
  ],
  [
    'Gemini counts the cache in the prompt, and thoughts beside the candidates',
    'gemini',
    {
      promptTokenCount: 1_000,
      cachedContentTokenCount: 900,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 95,
      totalTokenCount: 1_100,
    },
    [1_000, 100, 900, 0],
  ],
  [
    'DeepSeek tells hits and misses of its cache',
    'openai',
    {
      prompt_tokens: 100,
      completion_tokens: 5,
      total_tokens: 105,
      prompt_cache_hit_tokens: 64,
      prompt_cache_miss_tokens: 36,
    },
    [100, 5, 64, 0],
  ],
  [
    'OpenRouter tells what it wrote to a cache',
    'openai',
    {
      prompt_tokens: 100,
      completion_tokens: 5,
      total_tokens: 105,
      prompt_tokens_details: { cached_tokens: 10, cache_write_tokens: 80 },
    },
    [100, 5, 10, 80],
  ],
  [
    'a total that leaves out what it should hold changes nothing',
    'openai',
    { prompt_tokens: 100, completion_tokens: 5, total_tokens: 0 },
    [100, 5, 0, 0],
  ],
  [
    'input_tokens hold the cache at OpenAI',
    'openai',
    { input_tokens: 50, input_tokens_details: { cached_tokens: 30 }, output_tokens: 7 },
    [50, 7, 30, 0],
  ],
  [
    'input_tokens leave out the cache at Anthropic',
    'anthropic',
    {
      input_tokens: 50,
      cache_read_input_tokens: 30,
      cache_creation_input_tokens: 4,
      output_tokens: 7,
    },
    [84, 7, 30, 4],
  ],
  [
    'what Anthropic does not tell is null',
    'anthropic',
    { input_tokens: null, cache_read_input_tokens: null, output_tokens: 7 },
    [0, 7, 0, 0],
  ],
  [
    'what the tools of Gemini read is input',
    'gemini',
    {
      promptTokenCount: 20,
      toolUsePromptTokenCount: 300,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 2,
      totalTokenCount: 327,
    },
    [320, 7, 0, 0],
  ],
  [
    'interactions of Gemini have names of their own',
    'gemini',
    {
      total_input_tokens: 20,
      total_cached_tokens: 8,
      total_output_tokens: 5,
      total_thought_tokens: 2,
      total_tool_use_tokens: 1,
      total_tokens: 28,
    },
    [21, 7, 8, 0],
  ],
  [
    'the input of Bedrock leaves out the cache',
    'bedrock',
    {
      inputTokenCount: 13,
      outputTokenCount: 5,
      cacheReadInputTokenCount: 20,
      cacheWriteInputTokenCount: 4,
    },
    [37, 5, 20, 4],
  ],
  [
    'Cohere is charged for less than it reads',
    'openai',
    {
      billed_units: { input_tokens: 5, output_tokens: 4 },
      tokens: { input_tokens: 71, output_tokens: 4 },
    },
    [71, 4, 0, 0],
  ],
  [
    'Titan counts at the top',
    'bedrock',
    { inputTextTokenCount: 6, totalOutputTextTokenCount: 9 },
    [6, 9, 0, 0],
  ],
];
