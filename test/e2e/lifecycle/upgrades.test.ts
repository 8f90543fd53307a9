// Failed upgrades on plain workerd: to it, an upgrade that the upstream resets looks like a broken connection. An upgrade that
// announces a body would hold its slot until the body arrives.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS, startStage } from '../support/lifecycle-stage.ts';
import { SocketClient } from '../support/socket-client.ts';
import { exchange } from '../support/wire.ts';

const WARM_CALLS = 6;

let stage: LifecycleStage;
let resetting: Server;
let upgrades = 0;

const group = (name: string, fields: object = {}): object => ({
  name,
  match: { upstreams: [name] },
  limits: { max_concurrency: WARM_CALLS },
  holds: NO_HOLDS,
  adaptive: 'off',
  ...fields,
});

beforeAll(async () => {
  resetting = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.end('{}'));
  });
  resetting.on('upgrade', (_request, socket) => {
    upgrades += 1;
    (socket as unknown as { resetAndDestroy(): void }).resetAndDestroy();
  });
  await new Promise<void>((resolve) => resetting.listen(0, '127.0.0.1', resolve));
  const { port } = resetting.address() as AddressInfo;
  const upstream = { base_url: `http://127.0.0.1:${port}/v1`, dialect: 'openai' };
  stage = await startStage({
    config: () => ({
      upstreams: [
        { ...upstream, id: 'once', websocket: 'turns' },
        { ...upstream, id: 'again' },
      ],
      groups: [group('once'), group('again', { retries: { max: 2, budget: 1 } })],
    }),
  });
});

afterAll(async () => {
  await stage.close();
  resetting.close();
  resetting.closeAllConnections();
});

beforeEach(async () => {
  // Connections of these calls stay open for the upgrade to reuse.
  const calls = Array.from({ length: WARM_CALLS }, () =>
    fetch(`${stage.url()}/once/chat/completions`, { method: 'POST', body: '{"model":"m"}' }),
  );
  for (const call of calls) await (await call).text();
  upgrades = 0;
});

it.each([
  ['a session', '/once/realtime?model=m', 1],
  ['a session of a group with two retries', '/again/realtime?model=m', 3],
  ['a connection of turns', '/once/responses', 1],
])(
  '%s whose upgrade the upstream resets is sent as often as configured',
  async (_, path, times) => {
    const client = new SocketClient(stage.url() + path);
    expect((await client.end)[0]).toBe(502);
    expect(upgrades).toBe(times);
    await stage.admin.untilIdle();
  },
);

it.each(['Content-Length: 5', 'Transfer-Encoding: chunked'])(
  'an upgrade with %s is refused before the upstream is called',
  async (header) => {
    const lines = [
      'GET /once/realtime?model=m HTTP/1.1',
      'Host: localhost',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      header,
      '\r\n',
    ];
    const port = Number(new URL(stage.url()).port);
    const { answers } = await exchange(port, [Buffer.from(lines.join('\r\n'))], 1);
    expect(answers[0]?.status).toBe(400);
    expect(answers[0]?.head).toMatch(/^headgate-reason: header_invalid$/m);
    expect(answers[0]?.body).toContain('must not have a body');
    expect(upgrades).toBe(0);
    await stage.admin.untilIdle();
  },
);
