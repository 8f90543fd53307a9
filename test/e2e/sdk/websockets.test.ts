// The SDKs that speak WebSocket, through Headgate on workerd: their own words, a queue where there is no slot, and
// never more at the upstream than its group allows.
import { GoogleGenAI, Modality } from '@google/genai';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import OpenAI, { AzureOpenAI } from 'openai';
import { OpenAIRealtimeWebSocket } from 'openai/realtime/websocket';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NO_HOLDS } from '../support/lifecycle-stage.ts';
import type { SdkStage } from '../support/sdk-stage.ts';
import { startSdkStage } from '../support/sdk-stage.ts';
import { PATIENT, SocketClient } from '../support/socket-client.ts';
import type { TlsPipe } from '../support/tls-pipe.ts';
import { startTlsPipe } from '../support/tls-pipe.ts';
import { CALLER_KEY, QUESTION } from './cases/sdk-case.ts';

const LIMIT = 1;
const AT_ONCE = 3;

let stage: SdkStage;
let tls: TlsPipe;
let folder: string;
const trusted = getCACertificates('default');

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-tls-'));
  stage = await startSdkStage({
    groups: ['openai', 'azure', 'gemini'].map((id) => ({
      name: id,
      match: { upstreams: [id] },
      limits: { max_concurrency: LIMIT },
      holds: NO_HOLDS,
    })),
  });
  tls = await startTlsPipe(stage.url, folder);
  // The SDK's realtime clients take no address without TLS.
  setDefaultCACertificates([...trusted, tls.certificate.toString()]);
});

afterAll(async () => {
  setDefaultCACertificates(trusted);
  tls.close();
  await stage.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Clients of OpenAI's and Azure's realtime API, which share their words. */
const REALTIME: readonly (readonly [
  string,
  string,
  () => Promise<OpenAIRealtimeWS | OpenAIRealtimeWebSocket>,
])[] = [
  [
    'OpenAIRealtimeWS',
    'openai',
    async () => new OpenAIRealtimeWS({ model: 'gpt-realtime' }, openai('/openai/v1')),
  ],
  [
    'OpenAIRealtimeWebSocket, as in a browser',
    'openai',
    async () => new OpenAIRealtimeWebSocket({ model: 'gpt-realtime' }, openai('/openai/v1')),
  ],
  ['OpenAIRealtimeWS of Azure', 'azure', () => OpenAIRealtimeWS.azure(azure())],
  ['OpenAIRealtimeWebSocket of Azure', 'azure', () => OpenAIRealtimeWebSocket.azure(azure())],
];

const openai = (path: string): OpenAI =>
  new OpenAI({ baseURL: `${tls.url}${path}`, apiKey: CALLER_KEY });

const azure = (): AzureOpenAI =>
  new AzureOpenAI({
    baseURL: `${tls.url}/azure/openai`,
    apiKey: CALLER_KEY,
    apiVersion: '2026-04-01',
    deployment: 'gpt-realtime',
  });

/** Asks one question in a session of its own, and closes it. Answers with the text. */
function askRealtime(client: OpenAIRealtimeWS | OpenAIRealtimeWebSocket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    client.on('error', reject);
    client.on('session.created', () => {
      const content = [{ type: 'input_text' as const, text: QUESTION }];
      client.send({
        type: 'conversation.item.create',
        item: { type: 'message', role: 'user', content },
      });
      client.send({ type: 'response.create' });
    });
    client.on('response.output_text.delta', ({ delta }) => (text += delta));
    client.on('response.done', () => {
      client.close({ code: 1000, reason: 'asked' });
      resolve(text);
    });
  });
}

describe.each(REALTIME)('%s', (_name, id, connect) => {
  it('has sessions that wait for one another, and close as they say', async () => {
    stage.strict.reset();
    stage.strict.configure({ limit: LIMIT, chunkDelayMs: 5 });
    const ask = async (): Promise<string> => askRealtime(await connect());
    const texts = await Promise.all(Array.from({ length: AT_ONCE }, ask));
    expect(new Set(texts).size).toBe(1);
    expect(texts[0]).toContain('How much water');
    const { sessions, sockets } = stage.strict.stats();
    expect(sessions).toMatchObject({ peak: LIMIT, total: AT_ONCE, rejected429: 0 });
    for (const socket of sockets) {
      expect(socket).toMatchObject({ key: CALLER_KEY, kind: 'realtime' });
      expect(JSON.stringify(socket.headers)).not.toContain('headgate');
      expect(socket.path).toBe(id === 'azure' ? '/openai/v1/realtime' : '/v1/realtime');
    }
    await expect
      .poll(() => stage.strict.stats().sockets.map(({ closeCode }) => closeCode), PATIENT)
      .toEqual(Array.from({ length: AT_ONCE }, () => 1000));
    expect(stage.strict.stats().sockets[0]).toMatchObject({ closeReason: 'asked' });
  });
});

describe('@google/genai Live', () => {
  const ask = async (): Promise<string> => {
    const ai = new GoogleGenAI({
      apiKey: CALLER_KEY,
      httpOptions: { baseUrl: `${stage.url}/gemini` },
    });
    let text = '';
    const turn = Promise.withResolvers<void>();
    const session = await ai.live.connect({
      model: 'gemini-live-2.5-flash',
      config: { responseModalities: [Modality.TEXT] },
      callbacks: {
        onmessage: (message) => {
          text += message.text ?? '';
          if (message.serverContent?.turnComplete === true) turn.resolve();
        },
        onerror: ({ message }) => turn.reject(new Error(message)),
        onclose: ({ code, reason }) => turn.reject(new Error(`${code} ${reason}`)),
      },
    });
    session.sendClientContent({ turns: QUESTION, turnComplete: true });
    await turn.promise;
    session.close();
    return text;
  };

  it('has sessions that wait for one another', async () => {
    stage.strict.reset();
    stage.strict.configure({ limit: LIMIT, chunkDelayMs: 5 });
    const texts = await Promise.all(Array.from({ length: AT_ONCE }, ask));
    expect(new Set(texts).size).toBe(1);
    expect(texts[0]).toContain('How much water');
    const { sessions, sockets } = stage.strict.stats();
    expect(sessions).toMatchObject({ peak: LIMIT, total: AT_ONCE, rejected429: 0 });
    expect(sockets.map(({ key }) => key)).toEqual([CALLER_KEY, CALLER_KEY, CALLER_KEY]);
  });
});

describe('ResponsesWS', () => {
  const connect = (): ResponsesWS => new ResponsesWS(openai('/openai/v1'));

  /** Asks on a connection that is open for longer, in a lane of its own where it has one. */
  const ask = (client: ResponsesWS, text: string, lane?: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const ofLane = lane === undefined ? {} : { stream_id: lane };
      client.send({ type: 'response.create', model: 'gpt-5', input: text, ...ofLane });
      client.on('error', reject);
      client.on('response.completed', ({ response, stream_id }) => {
        if (stream_id === lane) resolve(response.output_text ?? JSON.stringify(response.output));
      });
    });

  it('has turns that wait for one another, whatever connection they are on', async () => {
    stage.strict.reset();
    stage.strict.configure({ limit: LIMIT, chunkDelayMs: 5 });
    const clients = Array.from({ length: AT_ONCE }, connect);
    const [first, second] = clients as [ResponsesWS, ResponsesWS];
    const lanes = [ask(first, QUESTION, 'a'), ask(first, QUESTION, 'b')];
    const texts = await Promise.all([...lanes, ...clients.slice(1).map((c) => ask(c, QUESTION))]);
    expect(texts).toHaveLength(AT_ONCE + 1);
    for (const text of texts) expect(text).toContain('How much water');
    // Between two turns a connection holds nothing.
    expect(await ask(second, 'once more')).toContain('once more');
    const { turns, sessions, sockets } = stage.strict.stats();
    expect(turns).toMatchObject({ peak: LIMIT, total: AT_ONCE + 2, rejected429: 0 });
    expect(sessions.total).toBe(0);
    expect(sockets).toHaveLength(AT_ONCE);
    for (const client of clients) client.close();
  });

  it('shares its slots with calls over HTTP', async () => {
    stage.strict.reset();
    stage.strict.configure({ limit: LIMIT, chunkDelayMs: 5 });
    const client = connect();
    const plain = openai('/openai/v1').responses;
    const calls = Array.from({ length: AT_ONCE }, async () => {
      const answer = await plain.create({ model: 'gpt-5', input: QUESTION });
      return answer.output_text;
    });
    const texts = await Promise.all([ask(client, QUESTION), ...calls]);
    for (const text of texts) expect(text).toContain('How much water');
    expect(stage.strict.stats()).toMatchObject({ peak: LIMIT, total: AT_ONCE + 1, rejected429: 0 });
    client.close();
  });
});

describe('a coding agent that tries WebSocket first, as Codex does', () => {
  const headers = {
    authorization: `Bearer ${CALLER_KEY}`,
    'openai-beta': 'responses_websockets=2026-02-06',
    originator: 'codex_exec',
    session_id: '0199-session',
    'user-agent': 'codex_exec/0.169.0',
  };
  const create = (fields: object): string =>
    JSON.stringify({
      type: 'response.create',
      model: 'gpt-5-codex',
      instructions: 'You are a coding agent.',
      input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: QUESTION }] }],
      store: false,
      stream: true,
      ...fields,
    });
  const completed = async (client: SocketClient, count: number): Promise<void> => {
    const isCompleted = (message: unknown): boolean =>
      String(message).includes('"type":"response.completed"');
    await expect.poll(() => client.messages.filter(isCompleted).length, PATIENT).toBe(count);
  };

  it('warms up, and has its turns on one connection', async () => {
    stage.strict.reset();
    stage.strict.configure({ limit: LIMIT, chunkDelayMs: 0 });
    const client = await new SocketClient(`${stage.url}/openai/v1/responses`, { headers }).opened();
    client.socket.send(create({ generate: false }));
    await completed(client, 1);
    client.socket.send(create({ previous_response_id: 'resp_1' }));
    await completed(client, 2);
    expect(stage.strict.stats().turns).toMatchObject({ peak: 1, completed: 2, rejected429: 0 });
    expect(stage.strict.stats().sockets).toMatchObject([{ key: CALLER_KEY, headers }]);
    client.socket.close();
    await client.end;
  });

  it('is sent to HTTP at once where nothing is known to speak so', async () => {
    stage.strict.reset();
    const url = `${stage.url}/ollama/v1/responses`;
    const [status, body] = await new SocketClient(url, { headers }).end;
    expect(status).toBe(426);
    expect(JSON.parse(body)).toMatchObject({ error: { code: 'http_required' } });
    const answer = await fetch(url, { method: 'POST', headers, body: create({}) });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('response.completed');
    expect(stage.strict.stats().sockets).toEqual([]);
  });

  it('is sent to HTTP where the upstream itself refuses', async () => {
    stage.strict.reset();
    stage.strict.configure({ status: 404 });
    const url = `${stage.url}/openai/v1/responses`;
    expect((await new SocketClient(url, { headers }).end)[0]).toBe(426);
    stage.strict.configure({ status: null });
  });
});
