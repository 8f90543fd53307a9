/** The bytes of the benchmark's calls: what the official OpenAI SDK sends, and a provider's answers. */

/** Pause between two chunks of a stream: about what a fast model takes for a token. */
export const CHUNK_EVERY_MS = 5;

const completion = JSON.stringify({
  id: 'chatcmpl-BPYXzUqcOSOIVFQXGkwZoVCWBgPaS',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: 'gpt-4o-mini-2024-07-18',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Paris is the capital of France.', refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 24, completion_tokens: 8, total_tokens: 32 },
  service_tier: 'default',
  system_fingerprint: 'fp_34a54ae93c',
});

const answerHead = (contentType: string, length: string, status = '200 OK'): string =>
  `HTTP/1.1 ${status}\r\nContent-Type: ${contentType}\r\n${length}\r\nDate: Fri, 20 Nov 2026 10:00:00 GMT\r\n` +
  'x-request-id: req_0123456789abcdef0123456789abcdef\r\nopenai-processing-ms: 12\r\n' +
  'x-ratelimit-limit-requests: 10000\r\nx-ratelimit-remaining-requests: 9999\r\n\r\n';

export const jsonAnswer = Buffer.from(
  answerHead('application/json', `Content-Length: ${Buffer.byteLength(completion)}`) + completion,
);

const tooMany = JSON.stringify({
  error: {
    message: 'Too many concurrent requests',
    type: 'rate_limit_error',
    code: 'too_many_concurrent_requests',
  },
});

/** Refusal of a call above a limit of concurrency. */
export const tooManyAnswer = Buffer.from(
  answerHead(
    'application/json',
    `Content-Length: ${Buffer.byteLength(tooMany)}`,
    '429 Too Many Requests',
  ) + tooMany,
);

export const STREAM_HEAD: string = answerHead('text/event-stream', 'Transfer-Encoding: chunked');

const event = `data: ${JSON.stringify({
  id: 'chatcmpl-BPYXzUqcOSOIVFQXGkwZoVCWBgPaS',
  object: 'chat.completion.chunk',
  created: 1_790_000_000,
  model: 'gpt-4o-mini-2024-07-18',
  choices: [{ index: 0, delta: { content: ' token' }, logprobs: null, finish_reason: null }],
})}\n\n`;

export const streamChunk = Buffer.from(`${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`);

/** A whole POST of a small chat completion that the upstream answers in so long: whole then, or in so many chunks. */
export function slowChatRequest(
  pathname: string,
  afterMs: number,
  streamChunks: number | null = null,
): Buffer {
  const after = `${pathname}?after=${afterMs}`;
  if (streamChunks === null) return post(after, { ...small('gpt-4o-mini'), max_tokens: 256 });
  return post(`${after}&stream=${streamChunks}`, { ...small('gpt-4o-mini'), stream: true });
}

/** The same request of a caller who has this key. */
export function withKey(request: Buffer, key: string): Buffer {
  const text = request.toString('latin1');
  return Buffer.from(
    text.replace(/^authorization: .*$/m, `authorization: Bearer ${key}`),
    'latin1',
  );
}

/** A whole POST of a small chat completion. `model` is in the body, where some groups need it. */
export function chatRequest(
  pathname: string,
  model: string,
  streamChunks: number | null,
  { everyMs, headers = [] }: { everyMs?: number | undefined; headers?: readonly string[] } = {},
): Buffer {
  if (streamChunks === null) return post(pathname, small(model), headers);
  const every = everyMs === undefined ? '' : `&every=${everyMs}`;
  const target = `${pathname}?stream=${streamChunks}${every}`;
  return post(target, { ...small(model), stream: true }, headers);
}

const small = (model: string): object => ({
  model,
  messages: [
    { role: 'system', content: 'You answer questions about geography in one sentence.' },
    { role: 'user', content: 'What is the capital of France?' },
  ],
});

function post(target: string, content: object, headers: readonly string[] = []): Buffer {
  const body = JSON.stringify(content);
  const head = [
    `POST ${target} HTTP/1.1`,
    'host: localhost',
    'accept: application/json',
    'content-type: application/json',
    'user-agent: OpenAI/JS 7.55.0',
    'x-stainless-lang: js',
    'x-stainless-package-version: 7.55.0',
    'x-stainless-os: Linux',
    'x-stainless-arch: x64',
    'x-stainless-runtime: node',
    'x-stainless-runtime-version: v24.21.0',
    'x-stainless-retry-count: 0',
    'x-stainless-timeout: 600',
    'authorization: Bearer sk-proj-0123456789abcdef0123456789abcdef0123456789abcdef',
    ...headers,
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
}
