import { createHash } from 'node:crypto';

/** A request body that is not small, and what must arrive of it. */
export interface LargeBody {
  readonly contentType: string;
  readonly data: Buffer;
  readonly sha256: string;
}

/** Where a body names its model: before everything else, after everything else, after a file. */
export type ModelPlace = 'first' | 'last' | 'after a file';

const BOUNDARY = 'boundary-of-a-large-body';

function finish(contentType: string, parts: readonly (string | Buffer)[]): LargeBody {
  const data = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return { contentType, data, sha256: createHash('sha256').update(data).digest('hex') };
}

/** Text that needs escapes and several bytes per character here and there, as prompts do. */
function filler(bytes: number): Buffer {
  const sentence = 'The quick brown fox says \\"model\\": \\u00e9\\n or \u{1F98A}, and jumps. ';
  return Buffer.alloc(bytes, sentence);
}

/** Lets a filler end where a character does, so that the whole stays valid JSON. */
function closed(text: Buffer): Buffer {
  return text.subarray(0, text.lastIndexOf('.'));
}

/** Makes a body of about so many bytes. */
export function largeBody(place: ModelPlace, model: string, bytes: number): LargeBody {
  const name = JSON.stringify(model);
  if (place === 'after a file') {
    const part = (disposition: string): string =>
      `--${BOUNDARY}\r\ncontent-disposition: form-data; ${disposition}\r\n`;
    return finish(`multipart/form-data; boundary=${BOUNDARY}`, [
      part('name="file"; filename="talk.mp3"'),
      'content-type: audio/mpeg\r\n\r\n',
      Buffer.alloc(bytes, 'no model here \r\n--bound'),
      `\r\n${part('name="model"')}\r\n${model}\r\n--${BOUNDARY}--\r\n`,
    ]);
  }
  const messages = ['"messages":[{"role":"user","content":"', closed(filler(bytes)), '"}]'];
  return finish(
    'application/json',
    place === 'first'
      ? [`{"model":${name},`, ...messages, '}']
      : ['{', ...messages, `,"model":${name}}`],
  );
}
