import { KeyNames } from '../json/json-key.ts';
import type { JsonVisitor, ValueKind, WalkedValue, Want } from '../json/json-visitor.ts';
import { JsonWalk } from '../json/json-walk.ts';
import {
  ASKED_TIER_KEYS,
  NO_TIERS,
  TIER_KEY_BYTES,
  TierReader,
  UNREAD_TIERS,
  type AskedTiers,
} from './tiers.ts';
import { TEXT_BYTES_PER_TOKEN } from './usage-meter.ts';

/**
 * Input tokens of an image or another file, whatever its size. An image of 1024 by 1024 costs 1,446 at
 * Claude, 1,229 at GPT and 1,090 at Gemini (a published table of November 2026). A long PDF costs far
 * more: the learned factor has to make up for it.
 */
export const FILE_TOKENS = 1_500;

/** A chat request is so many times as long as its gzip: 2.3 to 3.8 for prose and code of 2 to 200 kB. */
const BYTES_PER_COMPRESSED = 3;

/** Facts of a request's body before it is sent. */
export interface BodyFacts {
  /** The bytes that were read, from the first one on, in order. Empty: none were. */
  readonly chunks: readonly Uint8Array[];
  /** Bytes of the whole body; null: what was read is all of it, or all that is known. */
  readonly contentLength: number | null;
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
}

/** The expected use of a call, as far as its body tells. */
export interface CallEstimate {
  /** At least 1. */
  readonly inputTokens: number;
  /** The bound that the body sets, over all the answers it asks for. Null: it sets none. */
  readonly maxOutputTokens: number | null;
  /** Whether the body says `stream: true`. Ollama streams without it, and Gemini by its path. */
  readonly isStream: boolean;
  /** Whether the body asks OpenAI for the usage of a stream. */
  readonly wantsUsage: boolean;
  readonly tiers: AskedTiers;
}

/**
 * Estimates a call without a tokenizer: four UTF-8 bytes make a token, within -16 % and +20 % for prose,
 * code and Chinese or Japanese (measured against o200k); escapes count as what they stand for, and files
 * have their flat cost. One pass over the bytes; where there are none, their number has to do.
 */
export function estimateCall(facts: BodyFacts): CallEstimate {
  const { chunks } = facts;
  const readBytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const bytes = Math.max(facts.contentLength ?? 0, readBytes);
  if (/^\s*multipart\//i.test(facts.contentType ?? '')) return inputOnly(FILE_TOKENS, NO_TIERS);
  if (!/^\s*(?:identity\s*)?$/i.test(facts.contentEncoding ?? '')) {
    return inputOnly(tokensOf(bytes * BYTES_PER_COMPRESSED), UNREAD_TIERS);
  }
  const visitor = new BodyVisitor();
  const walk = new JsonWalk(visitor, {
    form: 'document',
    keys: KEYS,
    keepBytesMax: HEAD_BYTES,
    keyBytesMax: TIER_KEY_BYTES,
  });
  for (const chunk of chunks) walk.push(chunk);
  // What was read ends inside a file: nearly all of the rest is that file.
  const isCut = visitor.openFileAt !== null && isBase64(walk.kept, readBytes - visitor.openFileAt);
  const cutBytes = isCut ? bytes - (visitor.openFileAt ?? 0) : 0;
  const files = visitor.files + (isCut ? 1 : 0);
  return {
    inputTokens: tokensOf(bytes - cutBytes - visitor.asideBytes) + files * FILE_TOKENS,
    maxOutputTokens: visitor.maxOutputTokens(),
    isStream: visitor.isTrue('stream'),
    wantsUsage: visitor.isTrue('stream_options.include_usage'),
    tiers: readBytes === 0 && bytes > 0 ? UNREAD_TIERS : visitor.tiers(),
  };
}

function inputOnly(inputTokens: number, tiers: AskedTiers): CallEstimate {
  return { inputTokens, maxOutputTokens: null, isStream: false, wantsUsage: false, tiers };
}

function tokensOf(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / TEXT_BYTES_PER_TOKEN));
}

/** Bounds of the output, in all dialects. Of several, the largest counts. */
const OUTPUT_BOUNDS = [
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'max_tokens_to_sample',
  'max_gen_len',
  'generationConfig.maxOutputTokens',
  'generation_config.max_output_tokens',
  'inferenceConfig.maxTokens',
  'inferenceConfig.max_new_tokens',
  'textGenerationConfig.maxTokenCount',
  // Below 0 it means that there is no bound.
  'options.num_predict',
];

/** How many answers are made. */
const ANSWERS = ['n', 'best_of', 'generationConfig.candidateCount'];

const FIELDS = new Set([...OUTPUT_BOUNDS, ...ANSWERS, 'stream', 'stream_options.include_usage']);

/** Keys whose string is a file, or names one. */
const FILE_KEYS = new Set(['image_url', 'file_data', 'file_url', 'file_id', 'fileUri', 'file_uri']);

/** Keys that a file's address or its data stand under, and what must be around them. */
const URL_PARENTS = new Set(['image_url', 'video_url', 'audio_url', 'source']);
const DATA_PARENTS = new Set(['source', 'inlineData', 'inline_data', 'input_audio']);
const IMAGE_LIST = 'images';

const KEYS = new KeyNames([
  ...[...FIELDS].flatMap((field) => field.split('.')),
  ...FILE_KEYS,
  ...URL_PARENTS,
  ...DATA_PARENTS,
  ...ASKED_TIER_KEYS,
  IMAGE_LIST,
  'url',
  'data',
  'bytes',
]);

/** Bytes of a string that tell base64 from text, which Anthropic takes in the same place. */
const HEAD_BYTES = 64;

class BodyVisitor implements JsonVisitor {
  readonly #fields = new Map<string, string>();
  readonly #tiers = new TierReader();
  #files = 0;
  #asideBytes = 0;
  #openFileAt: number | null = null;

  get files(): number {
    return this.#files;
  }

  /** Bytes that are no text: files, and what escapes take more than they stand for. */
  get asideBytes(): number {
    return this.#asideBytes;
  }

  /** Where a file begins of which the end was not seen. */
  get openFileAt(): number | null {
    return this.#openFileAt;
  }

  key(value: WalkedValue): void {
    this.#tiers.key(value);
  }

  begin(value: WalkedValue, kind: ValueKind): Want {
    if (this.#tiers.begin(value, kind)) return 'keep';
    if (kind === 'string') {
      if (!mayBeFile(value)) return 'count';
      this.#openFileAt = value.start;
      return 'keep';
    }
    if (kind === 'scalar') return FIELDS.has(fieldOf(value)) ? 'keep' : 'skip';
    return 'walk';
  }

  end(value: WalkedValue, kind: ValueKind): void {
    if (kind === 'string' && this.#tiers.end(value)) return;
    const bytes = value.end - value.start;
    if (kind === 'scalar') {
      this.#fields.set(fieldOf(value), new TextDecoder().decode(value.kept));
    } else if (this.#openFileAt === null) {
      this.#asideBytes += bytes - 2 - value.textBytes;
    } else {
      this.#openFileAt = null;
      const isData = !isAddress(value);
      if (isData && !isBase64(value.kept, bytes)) return;
      this.#files += 1;
      this.#asideBytes += bytes;
    }
  }

  record(): void {
    // One record is all there is.
  }

  isTrue(field: string): boolean {
    return this.#fields.get(field) === 'true';
  }

  tiers(): AskedTiers {
    return this.#tiers.read();
  }

  maxOutputTokens(): number | null {
    const bounds = OUTPUT_BOUNDS.map((field) => this.#count(field)).filter(
      (bound) => bound !== null,
    );
    const answers = ANSWERS.map((field) => this.#count(field) ?? 1);
    return bounds.length === 0 ? null : Math.max(...bounds) * Math.max(...answers);
  }

  #count(field: string): number | null {
    const value = Number(this.#fields.get(field) ?? NaN);
    return Number.isSafeInteger(value) && value > 0 ? value : null;
  }
}

/** The path to a value, as far as it can be one of the fields. */
function fieldOf(value: WalkedValue): string {
  if (value.depth === 1) return value.key(1);
  return value.depth === 2 ? `${value.key(1)}.${value.key(2)}` : '';
}

function mayBeFile(value: WalkedValue): boolean {
  const { depth } = value;
  const key = value.key(depth);
  const parent = value.key(depth - 1);
  if (key === '') return parent === IMAGE_LIST;
  return isAddress(value) || ((key === 'data' || key === 'bytes') && DATA_PARENTS.has(parent));
}

/** Whether the place alone makes it a file. */
function isAddress(value: WalkedValue): boolean {
  const { depth } = value;
  const key = value.key(depth);
  return FILE_KEYS.has(key) || (key === 'url' && URL_PARENTS.has(value.key(depth - 1)));
}

function isBase64(head: Uint8Array, bytes: number): boolean {
  if (bytes < HEAD_BYTES) return false;
  const text = new TextDecoder('latin1').decode(head);
  // Some clients write `\/` for a slash.
  return text.startsWith('data:') || /^[\w+/=\\-]+$/.test(text);
}
