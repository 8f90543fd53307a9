import type { Strict } from '../support/strict.ts';
import { call, type CallInit } from '../support/worker.ts';

type EventStreamReader = ReadableStreamDefaultReader<Uint8Array>;

/** Reads on until the text holds something. */
export async function readUntil(reader: EventStreamReader, wanted: RegExp): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  while (!wanted.test(text)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`ended before ${String(wanted)}: ${text}`);
    text += decoder.decode(value, { stream: true });
  }
  return text;
}

export async function restOf(reader: EventStreamReader): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += decoder.decode(value, { stream: true });
  }
}

export function readerOf(response: Response): EventStreamReader {
  if (response.body === null) throw new Error('no body');
  return response.body.getReader();
}

/** Strips a stream of the signs of life of a call that waits: comments, or spaces in its first line. */
export function withoutSignsOfLife(text: string): string {
  return text.replaceAll(/: headgate [^\n]*\n\n/g, '').replace(/^data: +/, 'data: ');
}

/** A call that has its early answer, with what came so far. */
export async function keptAlive(path: string, init: CallInit) {
  const response = await call(path, init);
  const type = response.headers.get('content-type');
  if (response.status !== 200 || type?.includes('text/event-stream') !== true) {
    throw new Error(`no early answer: ${response.status} ${await response.text()}`);
  }
  const reader = readerOf(response);
  return { reader, first: await readUntil(reader, /\n\n|^data: +$/) };
}

/** Asks the upstream without Headgate in between. */
export async function bytesFromUpstream(
  { url }: Strict,
  body: string,
  path = '/v1/chat/completions',
): Promise<string> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', 'x-strict-silent-after-chunks': '99' },
  });
  return response.text();
}
