import type { Dialect } from './dialect.ts';
import { REASONS, type Refusal } from './reasons.ts';
import { errorBody } from './wire-error.ts';

/** The event streams in which comments and error frames have a meaning. */
export type FrameShape = 'openai' | 'openai_responses' | 'anthropic' | 'gemini';

/**
 * How an event stream of a call looks, or null: its answer is no event stream, so nothing may be sent
 * before the upstream's own first byte.
 */
export function frameShapeOf(dialect: Dialect, operation: string): FrameShape | null {
  switch (dialect) {
    case 'openai':
    case 'azure':
      return operation === 'responses' ? 'openai_responses' : 'openai';
    case 'anthropic':
      return 'anthropic';
    case 'gemini':
      return 'gemini';
    case 'bedrock':
    case 'ollama':
    case 'opaque':
      return null;
  }
}

/**
 * An error as the last event of a stream whose status was sent long ago. Each SDK raises its own error
 * from the frame of its dialect; there is no end marker after it, which would look like success.
 */
function errorFrame(shape: FrameShape, body: unknown): string {
  switch (shape) {
    case 'openai':
    case 'gemini':
      return `data: ${JSON.stringify(body)}\n\n`;
    case 'anthropic':
      return `event: error\ndata: ${JSON.stringify(body)}\n\n`;
    case 'openai_responses': {
      // Older SDKs swallow the flat form that the API documents, and raise from the nested one.
      const { error } = body as { error: { message: string; code: string | null } };
      const { message, code } = error;
      const flat = { type: 'error', code, message, param: null, error };
      return `event: error\ndata: ${JSON.stringify(flat)}\n\n`;
    }
  }
}

/** The frame for a refusal of ours. */
export function refusalFrame(shape: FrameShape, refusal: Refusal): string {
  const dialect = shape === 'openai_responses' ? 'openai' : shape;
  return errorFrame(shape, errorBody(dialect, refusal, REASONS[refusal.reason].status));
}

/** The frame for an upstream's error response, whose body may be anything. */
export function upstreamErrorFrame(shape: FrameShape, status: number, text: string): string {
  const body = parseObject(text);
  const message = `The upstream answered ${status}.`;
  if (body !== null && typeof body['error'] === 'object' && body['error'] !== null) {
    return errorFrame(shape, body);
  }
  if (shape === 'anthropic') {
    return errorFrame(shape, { type: 'error', error: { type: 'api_error', message } });
  }
  return errorFrame(shape, { error: { message, type: 'upstream_error', code: status } });
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
