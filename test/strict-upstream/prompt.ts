import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';

/** Source of the answer. The same request always gets the same bytes. */
export interface StrictPrompt {
  /** The model as the request names it, or null where it names none. */
  readonly model: string | null;
  readonly label: string | null;
  /** The `stream` flag, or null where the body has none. */
  readonly stream: boolean | null;
  readonly includeUsage: boolean;
  /** The words that the answer repeats. */
  readonly words: readonly string[];
  /** UTF-8 bytes of all its text / 4. */
  readonly inputTokens: number;
  /** The most tokens that the answer may have; 0: the request does not say. */
  readonly maxOutputTokens: number;
  /** Wishes of `[[strict …]]` in the last user message, by the names of the headers. */
  readonly asked: Readonly<Record<string, string>>;
  /** Eight hex digits that stand in ids. */
  readonly digest: string;
  readonly json: Readonly<Record<string, unknown>>;
}

type PromptJson = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is PromptJson =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function decoded(body: Buffer, encoding: string | undefined): Buffer {
  if (encoding === 'gzip') return gunzipSync(body);
  if (encoding === 'br') return brotliDecompressSync(body);
  if (encoding === 'deflate') return inflateSync(body);
  return encoding === 'zstd' ? zstdDecompressSync(body) : body;
}

/** One field of a multipart body. Good enough for test data: a file may not hold the field's header. */
function multipartField(body: Buffer, name: string): string | null {
  const at = body.indexOf(`name="${name}"`);
  if (at === -1) return null;
  const start = body.indexOf('\r\n\r\n', at) + 4;
  return body.toString('utf8', start, body.indexOf('\r\n--', start));
}

function parsed(body: Buffer, type: string): PromptJson {
  if (type.startsWith('multipart/')) {
    const fields = ['model', 'prompt', 'stream'].map((name) => [name, multipartField(body, name)]);
    return Object.fromEntries(fields.filter(([, value]) => value !== null));
  }
  if (body.length === 0) return {};
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** Plain text of a content field, in whichever dialect it is written. */
function textOf(content: unknown): string | null {
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) {
    const texts = content.map((part: unknown) => textOf(part)).filter((text) => text !== null);
    return texts.length === 0 ? null : texts.join(' ');
  }
  if (!isRecord(content)) return null;
  return textOf(content['text'] ?? content['content'] ?? content['parts']);
}

function lastUserText(json: PromptJson): string | null {
  const turns = json['messages'] ?? json['contents'] ?? json['input'] ?? json['prompt'];
  if (!Array.isArray(turns)) return textOf(turns);
  const last: unknown = turns.findLast(
    (turn: unknown) => !isRecord(turn) || turn['role'] === 'user' || turn['role'] === undefined,
  );
  return textOf(last);
}

const DIRECTIVES = /\[\[strict ([^\]]*)\]\]/g;

function askedIn(text: string): Record<string, string> {
  const fields = [...text.matchAll(DIRECTIVES)].flatMap(([, list = '']) => list.split(/\s+/));
  const pairs = fields.filter(Boolean).map((field) => {
    const [name = '', value = '1'] = field.split('=', 2);
    return [`x-strict-${name}`, value];
  });
  return Object.fromEntries(pairs) as Record<string, string>;
}

/** The bytes that a provider would count as tokens, a quarter of a token each. */
function textBytes(json: PromptJson): number {
  const parts = ['system', 'instructions', 'systemInstruction', 'messages', 'contents', 'input'];
  const texts = [...parts, 'prompt'].map((name) => textOf(json[name]) ?? '');
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

/** The maximum of the answer, as each dialect has it; for `n` choices it holds `n` times. */
function maxOutputTokens(json: PromptJson): number {
  const inner = ['generationConfig', 'options', 'inferenceConfig'].map((name) => json[name]);
  const fields = [json, ...inner].flatMap((value) => {
    if (!isRecord(value)) return [];
    const {
      max_completion_tokens: completion,
      max_tokens: older,
      max_output_tokens: output,
    } = value;
    const { maxOutputTokens: gemini, num_predict: ollama, maxTokens: bedrock } = value;
    return [completion, older, output, gemini, ollama, bedrock];
  });
  const most = fields.find((value): value is number => typeof value === 'number' && value > 0);
  return (most ?? 0) * (typeof json['n'] === 'number' ? json['n'] : 1);
}

/** Reads a request's body the way a provider would. */
export function readPrompt(headers: IncomingHttpHeaders, body: Buffer): StrictPrompt {
  const json = parsed(decoded(body, headers['content-encoding']), headers['content-type'] ?? '');
  const written = lastUserText(json);
  const text = written?.replaceAll(DIRECTIVES, '').trim() ?? null;
  const header = headers['x-label'];
  const stream = json['stream'];
  const options = json['stream_options'];
  const model = json['model'];
  const words = (text ?? '').slice(0, 2_000).split(/\s+/).filter(Boolean);
  return {
    model: typeof model === 'string' ? model : null,
    label: typeof header === 'string' ? header : (text?.slice(0, 200) ?? null),
    stream: stream === undefined ? null : stream === true || stream === 'true',
    includeUsage: isRecord(options) && options['include_usage'] === true,
    words: words.length === 0 ? ['nothing'] : words,
    inputTokens: Math.max(1, Math.ceil(textBytes(json) / 4)),
    maxOutputTokens: maxOutputTokens(json),
    asked: askedIn(written ?? ''),
    digest: createHash('sha256')
      .update(`${String(model)} ${text}`)
      .digest('hex')
      .slice(0, 8),
    json,
  };
}

/** The pieces of the answer: the model's name, then the prompt's words over and over. */
export function answerPieces(prompt: StrictPrompt, model: string, chunks: number): string[] {
  return Array.from({ length: chunks }, (_, i) =>
    i === 0 ? `[${model}]` : ` ${prompt.words[(i - 1) % prompt.words.length]}`,
  );
}
