// A body whose length makes more tokens than a limit, or costs more than a budget, is sent once nothing else is counted there.
import { afterAll, expect, it } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { call, type CallInit } from '../support/worker.ts';
import { newStage } from './stage.ts';

afterAll(nothingLeaks);

const LIMIT = 2_000;
const BASE64 = 'JVBERi0x'.repeat(8_000);
const LINES = `${'JVBERi0x'.repeat(9)}YW\n`.repeat(900);
const PDF = `data:application/pdf;base64,${BASE64}`;
const IMAGE = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
const RUSSIAN = 'достопримечательность '.repeat(400);
const ROWS = Array.from({ length: 900 }, (_, id) => ({ id, on: true }));

function chat(content: unknown, fields = {}): CallInit {
  return { json: { model: 'm', messages: [{ role: 'user', content }], ...fields } };
}

function response(content: unknown): CallInit {
  return { json: { model: 'm', input: [{ role: 'user', content }] } };
}

function contents(...parts: unknown[]): CallInit {
  return { json: { contents: [{ role: 'user', parts }] } };
}

function form(): CallInit {
  const body = new FormData();
  body.set('model', 'm');
  body.set('file', new Blob(['x'.repeat(60_000)]), 'a.mp3');
  return { method: 'POST', body };
}

async function zipped(text: string): Promise<CallInit> {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'));
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  return { method: 'POST', body: await new Response(packed).arrayBuffer(), headers };
}

const CHAT = '/v1/chat/completions';
const RESPONSES = '/v1/responses';
const MESSAGES = '/v1/messages';
const GEMINI = '/v1beta/models/m:generateContent';

const BODIES: Record<string, readonly [path: string, init: CallInit | Promise<CallInit>]> = {
  'a file': [CHAT, chat([{ type: 'file', file: { filename: 'a.pdf', file_data: PDF } }])],
  'an image': [CHAT, chat([{ type: 'image_url', image_url: { url: PDF } }])],
  'several small images': [CHAT, chat(Array.from({ length: 9 }, () => IMAGE))],
  audio: [CHAT, chat([{ type: 'input_audio', input_audio: { data: BASE64, format: 'wav' } }])],
  'a file of a response': [
    RESPONSES,
    response([
      { type: 'input_file', file_data: PDF },
      { type: 'input_image', image_url: PDF },
    ]),
  ],
  'the output of a function': [
    RESPONSES,
    {
      json: { model: 'm', input: [{ type: 'function_call_output', call_id: 'a', output: BASE64 }] },
    },
  ],
  'encrypted reasoning': [
    RESPONSES,
    {
      json: {
        model: 'm',
        input: Array.from({ length: 9 }, () => ({
          type: 'reasoning',
          encrypted_content: BASE64.slice(0, 5_000),
        })),
      },
    },
  ],
  'a document of Anthropic': [
    MESSAGES,
    chat([{ type: 'document', source: { type: 'base64', media_type: 'a/b', data: BASE64 } }]),
  ],
  'the result of a tool': [
    MESSAGES,
    chat([{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: BASE64 }] }]),
  ],
  'inline data of Gemini': [GEMINI, contents({ inlineData: { mimeType: 'a/b', data: BASE64 } })],
  'the answer of a function of Gemini': [
    GEMINI,
    contents({
      functionResponse: { name: 'f', response: { result: JSON.stringify({ a: BASE64 }) } },
    }),
  ],
  'base64 as text': [CHAT, chat(BASE64)],
  'base64 in lines': [CHAT, chat([{ type: 'thing', payload: LINES }])],
  'base64 in nested JSON': [CHAT, chat(JSON.stringify({ a: [{ b: JSON.stringify({ c: PDF }) }] }))],
  'base64 in a sentence': [CHAT, chat(`Read this: ${PDF}`)],
  'a text of two bytes a letter': [CHAT, chat(RUSSIAN)],
  'a text without spaces': [CHAT, chat('漢字仮名交じり文'.repeat(500))],
  'a run of spaces': [CHAT, chat(`a${' '.repeat(30_000)}b`)],
  'tables of JSON': [CHAT, chat('Sum up', { metadata: { rows: ROWS } })],
  'JSON over many lines': [CHAT, chat(JSON.stringify(ROWS.slice(0, 100), null, 24))],
  'tokens by number': [
    '/v1/embeddings',
    { json: { model: 'm', input: ROWS.map(({ id }) => id + 9_000) } },
  ],
  'a form': ['/v1/audio/transcriptions', form()],
  'a packed body': [CHAT, zipped(JSON.stringify(chat([{ type: 'text', text: BASE64 }]).json))],
};

it.each(Object.entries(BODIES))('%s', async (_, [path, init]) => {
  for (const limits of [{ tpm: LIMIT }, { itpm: 1_000 }, { tpm: 10_000, tpd: 1_000 }]) {
    const stage = await newStage({ group: { limits } });
    const answer = await call(`/${stage.upstream}${path}`, await init);
    expect([answer.headers.get('headgate-reason'), (await stage.strict.stats()).total]).toEqual([
      null,
      1,
    ]);
    await answer.arrayBuffer();
  }
});

it('a file beside output that its provider sets aside', async () => {
  const limits = { tpm: 1_000 };
  const stage = await newStage({ upstream: { id: 'cerebras' }, group: { limits } });
  const ask = (most: number) => call(stage.chat, chat(PDF, { max_tokens: most }));
  const answer = await ask(900);
  expect(answer.status).toBe(200);
  await answer.arrayBuffer();
  expect((await ask(1_001)).headers.get('headgate-reason')).toBe('never_fits');
});

it('a body that is too long to be read, in a budget', async () => {
  const limits = { budget_usd: { per_hour: 0.1 } };
  const upstream = { prices: { '*': { input: 1, output: 0 } } };
  const stage = await newStage({ upstream, group: { limits } });
  const answer = await call(stage.chat, chat(BASE64.repeat(70)));
  expect(answer.status).toBe(200);
  await answer.arrayBuffer();
});

it('a text with more words than the limit has tokens is refused at once', async () => {
  const stage = await newStage({ group: { limits: { tpm: LIMIT } } });
  for (const text of ['the '.repeat(2_001), 'the\n'.repeat(2_001), 'и\t'.repeat(2_001)]) {
    const answer = await call(stage.chat, chat(text));
    expect([answer.status, answer.headers.get('headgate-reason')]).toEqual([413, 'never_fits']);
  }
  expect((await stage.strict.stats()).total).toBe(0);
});
