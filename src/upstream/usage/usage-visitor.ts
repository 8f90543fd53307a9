import type { Dialect } from '../../contract/http.ts';
import { KeyNames, textOf } from '../json/json-string.ts';
import type { JsonVisitor, ValueKind, WalkedValue, Want } from '../json/json-syntax.ts';
import {
  REPORTED_TIER_KEYS,
  tiersInUsage,
  reportedField,
  reportedTier,
  type ServiceTiers,
} from './tiers.ts';
import { largerUsage, usageFromJson } from './usage.ts';
import type { TokenUsage } from './usage.ts';

const USAGE_KEYS = ['usage', 'usageMetadata', 'meta', 'amazon-bedrock-invocationMetrics'];

/**
 * Parents of such an object, if it is not at the top of a record: Anthropic's first event, the last event of an OpenAI
 * response, Groq, Cohere's last event, Gemini Interactions, Workers AI. Other positions are ignored, because a response
 * can contain data of the caller and of the model under any key.
 */
const USAGE_PARENTS = ['message', 'response', 'x_groq', 'delta', 'interaction', 'result'];

/** Numbers at the top of a record that report the usage: Ollama, and Llama and Titan on Bedrock. */
const COUNTERS = [
  'prompt_eval_count',
  'eval_count',
  'prompt_token_count',
  'generation_token_count',
  'inputTextTokenCount',
  'totalOutputTextTokenCount',
];

/** Top-level keys whose value, if it is a string, is text of the model. */
const TEXTS = ['delta', 'response', 'content', 'completion', 'generation', 'outputText'];

/** Top-level keys that contain text of the model, and the keys of that text. */
const TEXT_ROOTS = ['choices', 'delta', 'message', 'content', 'candidates', 'output', 'outputs'];
const TEXT_KEYS = [
  'content',
  'text',
  'thinking',
  'reasoning_content',
  'reasoning',
  'arguments',
  'partial_json',
  'refusal',
  'tool_plan',
  'transcript',
  // The input of a tool on Bedrock.
  'input',
];

/** Long values that contain no usage, or repeat the model's text. */
const SKIPPED = [
  'embedding',
  'embeddings',
  'values',
  'context',
  'logprobs',
  'citations',
  'annotations',
  'reasoning_details',
];

/** Names of the model in a response, next to its usage. */
const MODELS = ['model', 'modelVersion'];

const MODEL_LENGTH_MAX = 200;

/** Bedrock's streams carry the model's own events in base64. */
const WRAPPED = 'bytes';

export const USAGE_VISITOR_KEYS = new KeyNames([
  ...USAGE_KEYS,
  ...USAGE_PARENTS,
  ...COUNTERS,
  ...TEXTS,
  ...TEXT_ROOTS,
  ...TEXT_KEYS,
  ...SKIPPED,
  ...REPORTED_TIER_KEYS,
  ...MODELS,
  WRAPPED,
]);

const usageKeys = new Set(USAGE_KEYS);
const usageParents = new Set(USAGE_PARENTS);
const counters = new Set(COUNTERS);
const texts = new Set(TEXTS);
const textRoots = new Set(TEXT_ROOTS);
const textKeys = new Set(TEXT_KEYS);
const skipped = new Set(SKIPPED);
const models = new Set(MODELS);

/** Finds usage in the records of a response and counts the bytes of the model's text. */
export class UsageVisitor implements JsonVisitor {
  readonly #shape: Dialect;
  /** Receives the base64 content of a record. null if records have none. */
  readonly #onWrapped: ((base64: Uint8Array) => void) | null;
  #usage: TokenUsage | null = null;
  #tiers: ServiceTiers = {};
  #model: string | null = null;
  #counters: Record<string, unknown> | null = null;
  #textBytes = 0;
  /** Counts for this record. vLLM and others send the same text under both names. */
  #reasoningBytes = 0;
  #reasoningContentBytes = 0;
  /** Whether this record reports the output so far. */
  #reportsOutput = false;
  #reportedTextBytes = 0;

  constructor(shape: Dialect, onWrapped: ((base64: Uint8Array) => void) | null) {
    this.#shape = shape;
    this.#onWrapped = onWrapped;
  }

  get usage(): TokenUsage | null {
    return this.#usage;
  }

  /** The tiers that served the call, from the last record that reports any. */
  get tiers(): ServiceTiers {
    return this.#tiers;
  }

  /** The model that served the call, from the first record that names one. null if there is none. */
  get model(): string | null {
    return this.#model;
  }

  /** Bytes of text in the records after the last one that reported the output so far. */
  get unreportedBytes(): number {
    return this.#textBytes - this.#reportedTextBytes;
  }

  begin(value: WalkedValue, kind: ValueKind): Want {
    const { depth } = value;
    const key = value.key(depth);
    if (kind === 'string') {
      if (key === '') return 'skip';
      if (key === WRAPPED && depth === 1 && this.#onWrapped !== null) return 'keep';
      if (isText(value, key)) return 'count';
      if (this.#model === null && models.has(key) && mayReportTier(value)) return 'keep';
      return reportedField(value, mayReportTier(value)) === null ? 'skip' : 'keep';
    }
    if (kind === 'scalar') return depth === 1 && counters.has(key) ? 'keep' : 'skip';
    if (kind === 'object' && usageKeys.has(key) && mayReportUsage(value)) return 'keep';
    return skipped.has(key) ? 'skip' : 'walk';
  }

  end(value: WalkedValue, kind: ValueKind): void {
    const key = value.key(value.depth);
    if (kind === 'object') {
      const usage = parsed(value.kept);
      this.#report(usageFromJson(this.#shape, usage));
      this.#tiers = { ...this.#tiers, ...tiersInUsage(usage) };
    } else if (kind === 'scalar') {
      this.#counters ??= {};
      this.#counters[key] = parsed(value.kept);
    } else if (key === WRAPPED) {
      this.#onWrapped?.(value.kept);
    } else if (key === 'reasoning') {
      this.#reasoningBytes += value.textBytes;
    } else if (key === 'reasoning_content') {
      this.#reasoningContentBytes += value.textBytes;
    } else if (isText(value, key)) {
      this.#textBytes += value.textBytes;
    } else if (models.has(key)) {
      this.#model ??= textOf(value.kept)?.slice(0, MODEL_LENGTH_MAX) ?? null;
    } else {
      const field = reportedField(value, mayReportTier(value));
      const tier = field === null ? {} : reportedTier(field, textOf(value.kept));
      this.#tiers = { ...this.#tiers, ...tier };
    }
  }

  record(): void {
    if (this.#counters !== null) {
      this.#report(usageFromJson(this.#shape, this.#counters));
      this.#counters = null;
    }
    this.#textBytes += Math.max(this.#reasoningBytes, this.#reasoningContentBytes);
    this.#reasoningBytes = 0;
    this.#reasoningContentBytes = 0;
    if (this.#reportsOutput) this.#reportedTextBytes = this.#textBytes;
    this.#reportsOutput = false;
  }

  #report(usage: TokenUsage | null): void {
    if (usage === null) return;
    // Gemini's first records report only the input, so the text so far is still unreported.
    if (usage.outputTokens > 0) this.#reportsOutput = true;
    this.#usage = largerUsage(this.#usage, usage);
  }
}

function mayReportUsage(value: WalkedValue): boolean {
  const { depth } = value;
  if (depth === 1) return true;
  if (depth === 2) return usageParents.has(value.key(1));
  // Moonshot reports it in the last choice.
  return depth === 3 && value.key(1) === 'choices';
}

/** Whether a value is at a position where a response names its tier or model, next to its usage. */
function mayReportTier(value: WalkedValue): boolean {
  const { depth } = value;
  return depth === 1 || (depth === 2 && usageParents.has(value.key(1)));
}

function isText(value: WalkedValue, key: string): boolean {
  if (value.depth === 1) return texts.has(key);
  return textKeys.has(key) && textRoots.has(value.key(1));
}

function parsed(json: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(json));
  } catch {
    return null;
  }
}
