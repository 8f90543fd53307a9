import { isPlain, packingsOf, type Packing } from '../body/packing.ts';
import { KeyNames } from '../json/json-string.ts';
import type { JsonVisitor, ValueKind, WalkedValue, Want } from '../json/json-syntax.ts';
import { JsonWalk } from '../json/json-walk.ts';
import { Unpacker } from '../body/unpacker.ts';
import {
  ASKED_TIER_KEYS,
  NO_TIERS,
  TIER_KEY_BYTES,
  TierReader,
  UNREAD_TIERS,
  type RequestedTiers,
} from './tiers.ts';
import { TEXT_BYTES_PER_TOKEN } from './usage-meter.ts';

/**
 * Input tokens of an image or another file, whatever its size. An image of 1024 by 1024 costs 1,446 on Claude, 1,229 on
 * GPT and 1,090 on Gemini (a published table of November 2026). A long PDF costs far more, which the learned factor has
 * to compensate.
 */
export const FILE_TOKENS = 1_500;

/** Ratio of a chat request to its gzip. Measured: 2.3 to 3.8 for prose and code of 2 to 200 kB. */
const BYTES_PER_COMPRESSED = 3;

export interface BodyFacts {
  /** The bytes that were read, from the first one on, in order. Empty if none were read. */
  readonly chunks: readonly Uint8Array[];
  /** Length of the whole body in bytes. null if it is unknown, or the chunks are the whole body. */
  readonly contentLength: number | null;
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
}

export interface BodyCallEstimate {
  /** At least 1. */
  readonly inputTokens: number;
  /** Minimum of the input tokens: the number of words, because no tokenizer joins words. */
  readonly leastInputTokens: number;
  /** The output limit in the body, for all requested answers together. null if it has none. */
  readonly maxOutputTokens: number | null;
  /** Whether the body contains `stream: true`. Ollama streams without it, and Gemini selects streaming by path. */
  readonly isStream: boolean;
  /** Whether the body requests the usage of an OpenAI stream. */
  readonly wantsUsage: boolean;
  readonly tiers: RequestedTiers;
}

/**
 * Estimates a call without a tokenizer. Four UTF-8 bytes count as a token, which is within -16 % and +20 % for prose,
 * code and Chinese or Japanese (measured against o200k). Escapes count as the characters they represent, and files have
 * a flat cost. It takes one pass over the bytes. If there are none, the length of the body is used.
 */
export function estimateCall(facts: BodyFacts): BodyCallEstimate {
  const estimator = createEstimator(facts);
  for (const chunk of facts.chunks) estimator.push(chunk);
  return estimator.end();
}

interface BodyEstimator {
  push(chunk: Uint8Array): void;
  end(): BodyCallEstimate;
}

/** An estimator for a body. Either all of its bytes are pushed, or none. It does not read compressed bytes. */
function createEstimator(facts: Omit<BodyFacts, 'chunks'>): BodyEstimator {
  const { contentLength, contentType, contentEncoding } = facts;
  if (/^\s*multipart\//i.test(contentType ?? '')) return byLength(() => FILE_TOKENS, NO_TIERS);
  if (!isPlain(contentEncoding)) {
    const compressed = (bytes: number): number =>
      tokensOf(Math.max(contentLength ?? 0, bytes) * BYTES_PER_COMPRESSED);
    return byLength(compressed, UNREAD_TIERS);
  }
  return new JsonEstimator(contentLength);
}

function byLength(tokens: (bytes: number) => number, tiers: RequestedTiers): BodyEstimator {
  let bytes = 0;
  return {
    push(chunk) {
      bytes += chunk.length;
    },
    end: () => inputOnly(tokens(bytes), tiers),
  };
}

class JsonEstimator implements BodyEstimator {
  readonly #contentLength: number | null;
  readonly #visitor = new BodyVisitor();
  readonly #walk = new JsonWalk(this.#visitor, {
    form: 'document',
    keys: KEYS,
    keepBytesMax: HEAD_BYTES,
    keyBytesMax: TIER_KEY_BYTES,
  });
  #readBytes = 0;

  constructor(contentLength: number | null) {
    this.#contentLength = contentLength;
  }

  push(chunk: Uint8Array): void {
    this.#readBytes += chunk.length;
    this.#walk.push(chunk);
  }

  end(): BodyCallEstimate {
    const visitor = this.#visitor;
    const readBytes = this.#readBytes;
    const bytes = Math.max(this.#contentLength ?? 0, readBytes);
    // The part that was read ends inside a file, so nearly all of the rest is that file.
    const isCut = visitor.isInFile(this.#walk, readBytes);
    const cutBytes = isCut ? bytes - (visitor.openAt ?? 0) : 0;
    const files = visitor.files + (isCut ? 1 : 0);
    return {
      inputTokens: tokensOf(bytes - cutBytes - visitor.asideBytes) + files * FILE_TOKENS,
      leastInputTokens: visitor.words,
      maxOutputTokens: visitor.maxOutputTokens(),
      isStream: visitor.isTrue('stream'),
      wantsUsage: visitor.isTrue('stream_options.include_usage'),
      tiers: readBytes === 0 && bytes > 0 ? UNREAD_TIERS : visitor.tiers(),
    };
  }
}

function inputOnly(inputTokens: number, tiers: RequestedTiers): BodyCallEstimate {
  const leastInputTokens = 0;
  const unread = { maxOutputTokens: null, isStream: false, wantsUsage: false };
  return { inputTokens, leastInputTokens, ...unread, tiers };
}

function tokensOf(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / TEXT_BYTES_PER_TOKEN));
}

/** Output limits of all dialects. If there are several, the largest counts. */
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
  // A negative value means that there is no limit.
  'options.num_predict',
];

/** Number of answers that are generated. */
const ANSWERS = ['n', 'best_of', 'generationConfig.candidateCount'];

const FIELDS = new Set([...OUTPUT_BOUNDS, ...ANSWERS, 'stream', 'stream_options.include_usage']);

/** Keys of strings that contain a file, or its address or id. */
const FILE_KEYS = new Set(['file_data', 'file_url', 'file_id', 'fileUri', 'file_uri']);
const URL_KEYS = new Set(['image_url', 'video_url', 'audio_url', 'document_url', 'source']);

const ADDRESS_BYTES_MAX = 4_096;

/** Objects and a list that hold the data of a file. Anthropic accepts text there too. */
const DATA_PARENTS = new Set(['source', 'inlineData', 'inline_data', 'input_audio']);
const IMAGE_LIST = 'images';

/** Keys of strings that are text for the model. The model reads base64 there letter by letter. */
const TEXT_KEYS = new Set([
  'content',
  'text',
  'prompt',
  'input',
  'inputs',
  'instructions',
  'system',
]);

const KEYS = new KeyNames([
  ...[...FIELDS].flatMap((field) => field.split('.')),
  ...FILE_KEYS,
  ...URL_KEYS,
  ...DATA_PARENTS,
  ...TEXT_KEYS,
  ...ASKED_TIER_KEYS,
  IMAGE_LIST,
  'url',
  'data',
  'bytes',
]);

/** Number of bytes that distinguish a file from text. The longest type in a data URL has about 80. */
const HEAD_BYTES = 256;

/** Minimum bytes of base64 in a place for files, and elsewhere. Elsewhere, that much text costs as much as a file. */
const BASE64_BYTES_MIN = 64;
const LONE_BASE64_BYTES_MIN = FILE_TOKENS * TEXT_BYTES_PER_TOKEN;

class BodyVisitor implements JsonVisitor {
  readonly #fields = new Map<string, string>();
  readonly #tiers = new TierReader();
  #files = 0;
  #asideBytes = 0;
  #words = 0;
  #openAt: number | null = null;

  get files(): number {
    return this.#files;
  }

  /** Bytes that are not text: files, and the excess of escapes over the characters they represent. */
  get asideBytes(): number {
    return this.#asideBytes;
  }

  /** Number of words in the text. An embedded file has none. */
  get words(): number {
    return this.#words;
  }

  /** Start of the unfinished string. null if there is none. */
  get openAt(): number | null {
    return this.#openAt;
  }

  isInFile(walk: WalkedValue, readBytes: number): boolean {
    return this.#openAt !== null && isFile(walk, readBytes - this.#openAt);
  }

  key(value: WalkedValue): void {
    this.#tiers.key(value);
  }

  begin(value: WalkedValue, kind: ValueKind): Want {
    if (this.#tiers.begin(value, kind)) return 'keep';
    if (kind === 'string') {
      this.#openAt = value.start;
      return 'sample';
    }
    if (kind === 'scalar') return FIELDS.has(fieldOf(value)) ? 'keep' : 'skip';
    return 'walk';
  }

  end(value: WalkedValue, kind: ValueKind): void {
    if (kind === 'string' && this.#tiers.end(value)) return;
    const bytes = value.end - value.start;
    if (kind === 'scalar') {
      this.#fields.set(fieldOf(value), new TextDecoder().decode(value.kept));
    } else {
      this.#openAt = null;
      const isOfFile = isFile(value, bytes - 2);
      if (isOfFile) this.#files += 1;
      else this.#words += value.words;
      this.#asideBytes += isOfFile ? bytes : bytes - 2 - value.textBytes;
    }
  }

  record(): void {
    // The document has only one record.
  }

  isTrue(field: string): boolean {
    return this.#fields.get(field) === 'true';
  }

  tiers(): RequestedTiers {
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

/** The path to a value, or an empty text if it is too deep for any of the fields. */
function fieldOf(value: WalkedValue): string {
  if (value.depth === 1) return value.key(1);
  return value.depth === 2 ? `${value.key(1)}.${value.key(2)}` : '';
}

/** Whether a string of this length is a file or its address, judged by its value first and then by its key. */
function isFile(value: WalkedValue, bytes: number): boolean {
  const { depth } = value;
  const key = value.key(depth);
  const parent = value.key(depth - 1);
  if (bytes <= ADDRESS_BYTES_MAX && isAddress(key, parent)) return true;
  if (bytes < BASE64_BYTES_MIN) return false;
  const head = new TextDecoder('latin1').decode(value.kept);
  if (DATA_URL.test(head)) return true;
  if (!BASE64.test(head)) return false;
  const isPlaceForFiles =
    FILE_KEYS.has(key) ||
    isAddress(key, parent) ||
    (key === '' && parent === IMAGE_LIST) ||
    ((key === 'data' || key === 'bytes') && DATA_PARENTS.has(parent));
  if (isPlaceForFiles) return true;
  return bytes >= LONE_BASE64_BYTES_MIN && !TEXT_KEYS.has(key === '' ? parent : key);
}

/** Whether a short string under this key is always the address of a file. */
function isAddress(key: string, parent: string): boolean {
  if (FILE_KEYS.has(key)) return true;
  if (key === 'url') return URL_KEYS.has(parent);
  return key !== 'source' && URL_KEYS.has(key);
}

/** Some clients write `\/` for a slash. */
const DATA_URL = /^\s*data:[^,]{0,200};base64,/i;
const BASE64 = /^[\w+/=\\-]+$/;

const UNPACKED_BYTES_MAX = 16 * 1024 * 1024;

/** The estimate of a body. If `isRead` is false, the body stayed compressed and only its length was used. */
interface BodyEstimate {
  readonly estimate: BodyCallEstimate;
  readonly isRead: boolean;
}

/** Estimates a call by its body, which may be compressed. */
export async function estimateBody(facts: BodyFacts): Promise<BodyEstimate> {
  const packings = packingsOf(facts.contentEncoding);
  if (packings?.length === 0) return { estimate: estimateCall(facts), isRead: true };
  const read = packings === null ? null : await estimatePacked(facts, packings);
  return { estimate: read ?? estimateCall(facts), isRead: read !== null };
}

async function estimatePacked(
  facts: BodyFacts,
  packings: readonly Packing[],
): Promise<BodyCallEstimate | null> {
  if (facts.chunks.length === 0) return null;
  const estimator = createEstimator({ ...facts, contentLength: null, contentEncoding: null });
  let bytes = 0;
  const unpacker = new Unpacker(packings, (piece) => {
    bytes += piece.length;
    if (bytes > UNPACKED_BYTES_MAX) unpacker.close();
    else estimator.push(piece);
  });
  try {
    for (const chunk of facts.chunks) await unpacker.push(chunk);
    await unpacker.end();
    return estimator.end();
  } catch {
    return null;
  } finally {
    unpacker.close();
  }
}
