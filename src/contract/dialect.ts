/** The API shapes of upstreams. `opaque`: nothing is known of its bodies. */
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
