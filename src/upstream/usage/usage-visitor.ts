import type { Dialect } from '../../contract/dialect.ts';
import { KeyNames } from '../json/json-key.ts';
import { textOf } from '../json/json-string.ts';
import type { JsonVisitor, ValueKind, WalkedValue, Want } from '../json/json-visitor.ts';
import {
  REPORTED_TIER_KEYS,
  tiersInUsage,
  reportedField,
  reportedTier,
  type ServiceTiers,
} from './tiers.ts';
import { largerUsage, usageFromJson } from './usage.ts';
import type { TokenUsage } from './usage.ts';

/** Objects that tell the usage. */
const USAGE_KEYS = ['usage', 'usageMetadata', 'meta', 'amazon-bedrock-invocationMetrics'];

/**
 * Places where such an object may stand, besides the top of a record: Anthropic's first event, OpenAI's
 * last one of a response, Groq, Cohere's last event, Gemini's interactions, Workers AI. Nowhere else: an answer can
 * hold data of the caller and of the model's making, under any key.
 */
const USAGE_PARENTS = ['message', 'response', 'x_groq', 'delta', 'interaction', 'result'];

/** Numbers at the top of a record that tell the usage: Ollama; Llama and Titan on Bedrock. */
const COUNTERS = [
  'prompt_eval_count',
  'eval_count',
  'prompt_token_count',
  'generation_token_count',
  'inputTextTokenCount',
  'totalOutputTextTokenCount',
];

/** Top-level keys whose value, where it is a string, is text of the model. */
const TEXTS = ['delta', 'response', 'content', 'completion', 'generation', 'outputText'];

/** Top-level keys under which text of the model stands, and the keys that it then has. */
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
  // Of a tool, on Bedrock.
  'input',
];

/** Values that are long and tell nothing, or says the model's text once more. */
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

/** Names of the model in an answer, next to its usage. */
const MODELS = ['model', 'modelVersion'];

/** Maximum length of a model's name that is kept. */
const MODEL_LENGTH_MAX = 200;

/** Bedrock's streams carry the model's own events in base64. */
const WRAPPED = 'bytes';

/** The keys that a `UsageVisitor` tells apart. */
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

/** Finds usage in an answer's records and counts the bytes of the model's text. */
export class UsageVisitor implements JsonVisitor {
  readonly #shape: Dialect;
  /** Takes what a record carries in base64; null: nothing does. */
  readonly #onWrapped: ((base64: Uint8Array) => void) | null;
  #usage: TokenUsage | null = null;
  #tiers: ServiceTiers = {};
  #model: string | null = null;
  #counters: Record<string, unknown> | null = null;
  #textBytes = 0;
  /** Of this record: vLLM and others say the same under both names. */
  #reasoningBytes = 0;
  #reasoningContentBytes = 0;
  /** Whether this record says how much output there is so far. */
  #reportsOutput = false;
  #reportedTextBytes = 0;

  constructor(shape: Dialect, onWrapped: ((base64: Uint8Array) => void) | null) {
    this.#shape = shape;
    this.#onWrapped = onWrapped;
  }

  get usage(): TokenUsage | null {
    return this.#usage;
  }

  /** The tiers that served the call, as the last record with tiers reports. */
  get tiers(): ServiceTiers {
    return this.#tiers;
  }

  /** The model that served the call, as the first record that names one says. Null: none does. */
  get model(): string | null {
    return this.#model;
  }

  /** Bytes of text in the records after the last one that said how much output there is. */
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
    // Gemini's first records name the input only: that says nothing about the text so far.
    if (usage.outputTokens > 0) this.#reportsOutput = true;
    this.#usage = largerUsage(this.#usage, usage);
  }
}

function mayReportUsage(value: WalkedValue): boolean {
  const { depth } = value;
  if (depth === 1) return true;
  if (depth === 2) return usageParents.has(value.key(1));
  // Moonshot: in the last choice.
  return depth === 3 && value.key(1) === 'choices';
}

/** Where an answer names its tier: next to its usage. */
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
