import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Transform } from 'node:stream';
import {
  constants,
  createBrotliCompress,
  createBrotliDecompress,
  createGunzip,
  createGzip,
} from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { startStage } from '../support/lifecycle-stage.ts';
import { clock, FIGURE } from '../support/lifecycle-wait.ts';

/**
 * A compressed stream arrives when it was sent, and as it was sent. This upstream notes when each event
 * left it and every byte of it, which the strict one does not.
 */
const EVENTS = 10;
const EVENT_EVERY_MS = 150;

/** Most of them: one is late at times, on a machine that is busy with other things. */
const IN_TIME_MIN = 6;

const COMPRESSORS: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGzip({ flush: constants.Z_SYNC_FLUSH }),
  br: () => createBrotliCompress({ flush: constants.BROTLI_OPERATION_FLUSH }),
};

const DECOMPRESSORS: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip({ flush: constants.Z_SYNC_FLUSH }),
  br: () => createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH }),
};

const sentAt: number[] = [];
const sent: Buffer[] = [];
let server: Server;
let stage: LifecycleStage;

async function compress(encoding: string, write: (data: Buffer) => void): Promise<void> {
  const compressor = COMPRESSORS[encoding]?.();
  if (compressor === undefined) throw new Error(`no encoding ${encoding}`);
  compressor.on('data', (data: Buffer) => write(data));
  for (let i = 0; i < EVENTS; i += 1) {
    sentAt.push(clock());
    await new Promise((resolve) => compressor.write(`data: {"n":${i}}\n\n`, resolve));
    await delay(EVENT_EVERY_MS);
  }
  compressor.end();
  await once(compressor, 'end');
}

beforeAll(async () => {
  server = createServer((req, res) => {
    const encoding = String(req.headers['accept-encoding']);
    res.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': encoding });
    req.resume();
    compress(encoding, (data) => {
      sent.push(data);
      res.write(data);
    }).then(
      () => res.end(),
      () => res.destroy(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  stage = await startStage({
    config: () => ({ upstreams: [{ id: 'practice', base_url: `http://127.0.0.1:${port}` }] }),
  });
});

afterAll(async () => {
  await stage.close();
  server.close();
});

/** When each event could be read by a client that unpacks what it gets as it comes. */
async function eventTimes(call: LifecycleOpenCall, encoding: string): Promise<number[]> {
  const decompressor = DECOMPRESSORS[encoding]?.();
  if (decompressor === undefined) throw new Error(`no encoding ${encoding}`);
  const times: number[] = [];
  let at = 0;
  decompressor.on('data', (data: Buffer) => {
    const events = data.toString('utf8').split('\n\n').length - 1;
    for (let i = 0; i < events; i += 1) times.push(at);
  });
  for (const piece of call.received()) {
    at = piece.at;
    await new Promise((resolve) => decompressor.write(piece.data, resolve));
    await delay(0);
  }
  return times;
}

it.each(['gzip', 'br'])(
  'a %s stream arrives on time and byte for byte',
  FIGURE,
  async (encoding) => {
    sentAt.length = 0;
    sent.length = 0;
    const headers = { 'accept-encoding': encoding };
    const call = openChat(stage.url(), { label: encoding, headers });
    expect(await call.answered).toBe(200);
    expect(await call.ended).toBe('complete');
    expect(call.headers()['content-encoding']).toBe(encoding);
    expect(call.bytes().equals(Buffer.concat(sent))).toBe(true);
    const times = await eventTimes(call, encoding);
    expect(times).toHaveLength(EVENTS);
    // One that is held back until the next one comes is never there before that was sent.
    const inTime = times.filter((at, i) => at < (sentAt[i + 1] ?? Number.NaN));
    expect(inTime.length).toBeGreaterThanOrEqual(IN_TIME_MIN);
  },
);
