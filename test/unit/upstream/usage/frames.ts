import { crc32 } from 'node:zlib';

/** The forms that answers come in. */

export const SSE = 'text/event-stream; charset=utf-8';
export const JSON_TYPE = 'application/json';
export const EVENT_STREAM = 'application/vnd.amazon.eventstream';

export function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Frames with nothing but data, as OpenAI and Gemini write them. */
export function dataFrames(lines: readonly string[], lineEnd = '\n'): string {
  return lines.map((line) => `data: ${line}${lineEnd}${lineEnd}`).join('');
}

/** Frames that also name their event, as Anthropic and OpenAI's responses have them. */
export function eventFrames(lines: readonly string[]): string {
  return lines
    .map((line) => `event: ${/"type":"([^"]+)"/.exec(line)?.[1] ?? ''}\ndata: ${line}\n\n`)
    .join('');
}

/** Messages of Amazon's event stream. */
export function messages(payloads: readonly (readonly [string, string])[]): Uint8Array {
  return Buffer.concat(payloads.map(([type, payload]) => message(type, payload)));
}

/** An exception in Amazon's event stream. */
export function exception(type: string, payload: string): Uint8Array {
  return message(type, payload, 'exception');
}

function message(type: string, payload: string, kind = 'event'): Buffer {
  const headers = Buffer.concat([
    header(`:${kind}-type`, type),
    header(':content-type', 'application/json'),
    header(':message-type', kind),
  ]);
  const body = Buffer.from(payload);
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + headers.length + body.length, 0);
  prelude.writeUInt32BE(headers.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const whole = Buffer.concat([prelude, headers, body]);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(whole));
  return Buffer.concat([whole, checksum]);
}

function header(name: string, value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(value.length);
  return Buffer.concat([
    Buffer.from([name.length]),
    Buffer.from(name),
    Buffer.from([7]),
    length,
    Buffer.from(value),
  ]);
}

/** An event of a model, as Bedrock wraps it. */
export const wrapped = (event: string): readonly [string, string] => [
  'chunk',
  `{"bytes":"${Buffer.from(event).toString('base64')}","p":"abcdefghijklmn"}`,
];
