/** A piece of a response's body. */
export interface StrictFrame {
  readonly data: string | Uint8Array;
  /** Whether the event carries a part of the answer, rather than an opening or a closing. */
  readonly content: boolean;
  /** Output tokens that it carries. */
  readonly tokens: number;
}

/** The tokens of one call. The frames of its answer carry `output` together. */
export interface StrictUsage {
  readonly input: number;
  /** Part of `input`. */
  readonly cached: number;
  readonly output: number;
  /** Part of `output`. */
  readonly reasoning: number;
  /** The tier of service that is reported with it. */
  readonly tier?: string;
}

/** A whole response, not yet written. `frames` may be called more than once. */
export interface StrictAnswer {
  readonly contentType: string;
  /** One piece: it gets a Content-Length. */
  readonly whole: boolean;
  readonly frames: () => Iterable<StrictFrame>;
  /** Where the dialect has one: the event that tells of a failure in the middle of the stream. */
  readonly failure?: (chunksSent: number) => string;
}

/** The same moment in every answer, so that equal requests get equal bytes. */
export const CREATED_S = 1_790_000_000;

export const content = (data: string | Uint8Array, tokens = 0): StrictFrame => ({
  data,
  content: true,
  tokens,
});
export const framing = (data: string): StrictFrame => ({ data, content: false, tokens: 0 });

/** An answer that is one JSON document. */
export function jsonAnswer(value: unknown, tokens = 0): StrictAnswer {
  const data = JSON.stringify(value);
  return { contentType: 'application/json', whole: true, frames: () => [content(data, tokens)] };
}

/** An SSE answer. */
export function sseAnswer(frames: () => Iterable<StrictFrame>, failure: string): StrictAnswer {
  return {
    contentType: 'text/event-stream; charset=utf-8',
    whole: false,
    frames,
    failure: () => failure,
  };
}

/** One SSE event with data only. */
export const sseData = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

/** One SSE event whose name is its data's `type`. */
export const sseEvent = (value: {
  readonly type: string;
  readonly [field: string]: unknown;
}): string => `event: ${value.type}\n${sseData(value)}`;
