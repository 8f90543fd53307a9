import type { RateDimension } from './rates.ts';

/** Why the upstream refuses a call. */
export const REFUSAL_KINDS = [
  'concurrency',
  'requests',
  'tokens',
  'overload',
  'quota',
  'long_window',
  'never_fits',
  'ramp',
] as const;

export type StrictRefusalKind = (typeof REFUSAL_KINDS)[number];

/** Whose refusals and limit headers an upstream sends. */
export const PROVIDERS = [
  'openai',
  'anthropic',
  'gemini',
  'azure',
  'bedrock',
  'groq',
  'cerebras',
  'mistral',
  'deepseek',
  'zai',
  'moonshot',
  'minimax',
  'dashscope',
  'openrouter',
  'ollama',
  'cohere',
  'together',
] as const;

export type StrictProvider = (typeof PROVIDERS)[number];

/** One refusal, before it has a provider's form. */
export interface StrictRefusal {
  readonly kind: StrictRefusalKind;
  /** The limit that the call ran into; null: none that is counted per minute or day. */
  readonly dimension: RateDimension | null;
  readonly model: string | null;
  readonly limit: number;
  readonly used: number;
  readonly requested: number;
  /** Until the call would have fitted, in milliseconds; null: nothing tells. */
  readonly waitMs: number | null;
  /** When it was refused, in epoch milliseconds. */
  readonly at: number;
}

/** A refusal as it goes over the wire. */
export interface RefusalForm {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}
