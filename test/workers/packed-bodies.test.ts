// Compressed bodies while they are looked through: no more is unpacked than was pushed, and nothing is overlooked.
import { describe, expect, it } from 'vitest';
import type { ErrorReply } from '../../src/contract/reasons.ts';
import { scanEncoded, type BodyScan } from '../../src/upstream/body/encoded-scan.ts';
import { MORE, type ModelScan, type ScanState } from '../../src/upstream/body/model-scan.ts';
import { BodyWatch } from '../../src/upstream/body/pump.ts';

const BITE = 4_096;

/** A scan that only counts what it is shown. */
class PackedBodiesCounting implements ModelScan {
  readonly goesOn = true;
  readonly undecidedBytes = 0;
  readonly isStream = false;
  bytes = 0;

  push(bytes: Uint8Array): ScanState {
    this.bytes += bytes.length;
    return MORE;
  }

  end(): ScanState {
    return MORE;
  }
}

async function gzip(text: Blob): Promise<Uint8Array> {
  return new Response(text.stream().pipeThrough(new CompressionStream('gzip'))).bytes();
}

function scanOf(counting: PackedBodiesCounting): BodyScan {
  const scan = scanEncoded(counting, 'gzip');
  if (scan === null) throw new Error('gzip can be undone');
  return scan;
}

const noise = (): string => crypto.getRandomValues(new Uint8Array(30_000)).toHex();

/** Time in which everything would be read that is unpacked and unread. */
const later = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, 50);
  });

describe('what was pushed has been looked at', () => {
  it.each([
    ['text', () => new Blob(Array.from({ length: 10 }, noise))],
    ['a bomb', () => new Blob([new Uint8Array(16_000_000)])],
  ])('in %s, piece by piece', async (_what, text) => {
    const counting = new PackedBodiesCounting();
    const scan = scanOf(counting);
    const packed = await gzip(text());
    for (let at = 0; at < packed.length; at += 2 * BITE) {
      await scan.push(packed.subarray(at, at + 2 * BITE));
      const seen = counting.bytes;
      await later();
      expect(counting.bytes).toBe(seen);
    }
    await scan.end();
    expect(counting.bytes).toBe(text().size);
  });
});

it('a fault that a scan finds between two pieces breaks the body off', async () => {
  const fault: ErrorReply = { reason: 'body_unreadable', message: 'two models' };
  const { promise: pushed, resolve } = Promise.withResolvers<void>();
  let state: ScanState = MORE;
  const scan: BodyScan = {
    isPlain: false,
    undecidedBytes: 0,
    get state() {
      return state;
    },
    get goesOn() {
      return state === MORE;
    },
    push: async () => resolve(),
    end: async () => state,
    close: () => {},
  };
  const watch = new BodyWatch(scan, ({ kind }) => (kind === 'twice' ? fault : null));
  const [body, out] = [new IdentityTransformStream(), new IdentityTransformStream()];
  const [source, writer] = [body.writable.getWriter(), out.writable.getWriter()];
  const arrived = new Response(out.readable).text();
  const { signal } = new AbortController();
  const passed = watch.pass([], body.readable, writer, signal, null).catch(String);
  await source.write(new Uint8Array(10));
  await pushed;
  state = { kind: 'twice' };
  await source.close();
  expect(await passed).toBe('Error: two models');
  expect(watch.fault).toBe(fault);
  await Promise.allSettled([writer.abort(), arrived]);
});
