/** The API shapes of upstreams. Bodies of `opaque` upstreams are not read. */
export const DIALECTS = [
  'openai',
  'anthropic',
  'gemini',
  'azure',
  'bedrock',
  'ollama',
  'opaque',
] as const;

export type Dialect = (typeof DIALECTS)[number];
