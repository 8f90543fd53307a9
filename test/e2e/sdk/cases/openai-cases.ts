import { createHash } from 'node:crypto';
import OpenAI, { toFile } from 'openai';
import { collect } from '../../support/comparable.ts';
import type { SdkCase, SdkRoute } from './sdk-case.ts';
import { CALLER_KEY, QUESTION } from './sdk-case.ts';

const messages = [{ role: 'user' as const, content: QUESTION }];
const audio = () => toFile(Buffer.alloc(40_000, 'audio'), 'speech.wav', { type: 'audio/wav' });
const image = () => toFile(Buffer.alloc(9_000, 'image'), 'gate.png', { type: 'image/png' });

/** The official SDK on a route, its retries off. */
export const openaiClient = ({ baseUrl, headers }: SdkRoute): OpenAI =>
  new OpenAI({
    baseURL: baseUrl,
    apiKey: CALLER_KEY,
    maxRetries: 0,
    ...(headers !== undefined && { defaultHeaders: headers }),
  });

const openaiCase = (
  name: string,
  run: (client: OpenAI, model: SdkRoute['model']) => Promise<unknown>,
): SdkCase => ({ name, run: (route) => run(openaiClient(route), route.model) });

/** Calls that every OpenAI-shaped upstream has. */
export const CHAT_CASES: readonly SdkCase[] = [
  openaiCase('chat', (client, model) =>
    client.chat.completions.create({ model: model('gpt-4o-mini'), messages }),
  ),
  openaiCase('chat, streamed', async (client, model) =>
    collect(
      await client.chat.completions.create({
        model: model('gpt-4o-mini'),
        messages,
        stream: true,
        stream_options: { include_usage: true },
      }),
    ),
  ),
];

/** The other calls of OpenAI's own API. */
export const OPENAI_CASES: readonly SdkCase[] = [
  ...CHAT_CASES,
  openaiCase('chat, by the streaming helper', (client, model) =>
    client.chat.completions.stream({ model: model('gpt-4o-mini'), messages }).finalChatCompletion(),
  ),
  openaiCase('responses', (client, model) =>
    client.responses.create({ model: model('gpt-4o'), input: QUESTION }),
  ),
  openaiCase('responses, streamed', async (client, model) =>
    collect(
      await client.responses.create({ model: model('gpt-4o'), input: QUESTION, stream: true }),
    ),
  ),
  openaiCase('embeddings', (client, model) =>
    client.embeddings.create({ model: model('text-embedding-3-small'), input: QUESTION }),
  ),
  openaiCase('embeddings of several inputs, as floats', (client, model) =>
    client.embeddings.create({
      model: model('text-embedding-3-small'),
      input: ['water', 'gate'],
      encoding_format: 'float',
    }),
  ),
  openaiCase('images', (client, model) =>
    client.images.generate({ model: model('gpt-image-1'), prompt: QUESTION }),
  ),
  openaiCase('audio transcription (multipart)', async (client, model) =>
    client.audio.transcriptions.create({ file: await audio(), model: model('whisper-1') }),
  ),
  openaiCase('speech (binary)', async (client, model) => {
    const input = { model: model('tts-1'), voice: 'alloy' as const, input: QUESTION };
    const response = await client.audio.speech.create(input);
    const bytes = new Uint8Array(await response.arrayBuffer());
    const type = response.headers.get('content-type');
    return { type, length: bytes.length, hash: createHash('sha256').update(bytes).digest('hex') };
  }),
];

/** Cases that the mock does not know. */
export const STRICT_CASES: readonly SdkCase[] = [
  openaiCase('completions', (client, model) =>
    client.completions.create({ model: model('gpt-3.5-turbo-instruct'), prompt: QUESTION }),
  ),
  openaiCase('completions, streamed', async (client, model) =>
    collect(
      await client.completions.create({
        model: model('gpt-3.5-turbo-instruct'),
        prompt: QUESTION,
        stream: true,
      }),
    ),
  ),
  openaiCase('image edit (multipart)', async (client, model) =>
    client.images.edit({ image: await image(), model: model('gpt-image-1'), prompt: QUESTION }),
  ),
];

/** The list of models. It names none, so that no prefix can choose the upstream. */
export const MODELS_CASE = openaiCase('list of models', async (client) =>
  collect(client.models.list()),
);
