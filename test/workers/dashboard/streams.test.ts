// The streams of the live feed by themselves: who is let go, and when.
import { describe, expect, it, vi } from 'vitest';
import { Reader } from '../../../src/feed/subscriptions.ts';
import { whileAllowed } from '../../../src/admin/resources/events.ts';
import { until } from '../support/worker.ts';

const KIB = new Uint8Array(1_024);

describe('a reader', () => {
  it('that follows gets everything, in order', async () => {
    const onEnd = vi.fn<(reader: Reader) => void>();
    const reader = new Reader(null, Infinity, onEnd);
    const got: number[] = [];
    const reading = reader.body.pipeTo(
      new WritableStream<Uint8Array>({ write: (chunk) => void got.push(...chunk) }),
    );
    reading.catch(() => {});
    for (let value = 0; value < 40; value += 1) reader.send(new Uint8Array([value]));
    await until(() => expect(got).toEqual(Array.from({ length: 40 }, (_, value) => value)));
    expect(onEnd).not.toHaveBeenCalled();
    reader.end();
    await expect(reading).rejects.toThrow('the stream has ended');
  });

  it.each([
    ['many events', 1, 70],
    ['many bytes', 1_024, 7],
  ])('that does not read is let go once too much waits: %s', (_what, kibibytes, count) => {
    const onEnd = vi.fn<(reader: Reader) => void>();
    const reader = new Reader(null, Infinity, onEnd);
    const bytes = new Uint8Array(kibibytes * KIB.byteLength);
    for (let index = 0; index < count; index += 1) reader.send(bytes);
    expect(onEnd).toHaveBeenCalledTimes(1);
    reader.send(bytes);
    expect(onEnd).toHaveBeenCalledTimes(1);
  });

  it('may get one event that is larger than all that may wait', () => {
    const onEnd = vi.fn<(reader: Reader) => void>();
    const reader = new Reader(null, Infinity, onEnd);
    reader.send(new Uint8Array(8 * 1_048_576));
    reader.send(KIB);
    expect(onEnd).not.toHaveBeenCalled();
    reader.end();
  });

  it('that is sent away hears the last word, and its stream ends in good order', async () => {
    const onEnd = vi.fn<(reader: Reader) => void>();
    const reader = new Reader(null, Infinity, onEnd);
    const got = new Response(reader.body).bytes();
    reader.send(new Uint8Array([4]));
    await until(() => expect(reader.isBehind).toBe(false));
    reader.endWell(new Uint8Array([7]));
    expect(await got).toEqual(new Uint8Array([4, 7]));
    expect(onEnd).toHaveBeenCalledTimes(1);
  });

  it('that is sent away while it is behind is let go', async () => {
    const onEnd = vi.fn<(reader: Reader) => void>();
    const reader = new Reader(null, Infinity, onEnd);
    reader.send(KIB);
    reader.endWell(KIB);
    await expect(new Response(reader.body).bytes()).rejects.toThrow('the stream has ended');
    expect(onEnd).toHaveBeenCalledTimes(1);
  });

  it('that leaves is noticed at the next event', async () => {
    const onEnd = vi.fn<(reader: Reader) => void>();
    const reader = new Reader(null, Infinity, onEnd);
    await reader.body.cancel();
    reader.send(KIB);
    await until(() => expect(onEnd).toHaveBeenCalledTimes(1));
  });
});

describe('a stream that is passed on while it is allowed', () => {
  /** A source of what is written to it, that tells when nobody wants any more. */
  function source() {
    let controller: ReadableStreamDefaultController | undefined;
    const isGone = vi.fn<() => void>();
    const readable = new ReadableStream({
      start: (own) => void (controller = own),
      cancel: isGone,
    });
    return {
      readable,
      write: (bytes: Uint8Array) => controller?.enqueue(bytes),
      close: () => controller?.close(),
      isGone,
    };
  }

  it('goes through, and ends with its source', async () => {
    const { readable, write, close } = source();
    const { body, ended } = whileAllowed(readable, async () => true, 5);
    const reader = body.getReader();
    const read = reader.read();
    write(new Uint8Array([4, 7]));
    expect((await read).value).toEqual(new Uint8Array([4, 7]));
    close();
    expect((await reader.read()).done).toBe(true);
    await ended;
  });

  it('is asked about again and again, and breaks off once it is not', async () => {
    const { readable, write, isGone } = source();
    const beats = setInterval(() => write(new Uint8Array([1])), 5);
    isGone.mockImplementation(() => clearInterval(beats));
    const answers = [true, true, false];
    const isAllowed = vi.fn<() => Promise<boolean>>(async () => answers.shift() ?? false);
    const { body, ended } = whileAllowed(readable, isAllowed, 5);
    const reader = body.getReader();
    const readOn = async (): Promise<void> => {
      while (!(await reader.read()).done);
    };
    await expect(readOn()).rejects.toThrow('not allowed any more');
    await ended;
    expect(isAllowed.mock.calls.length).toBeGreaterThanOrEqual(3);
    expect(answers).toEqual([]);
    await until(() => expect(isGone).toHaveBeenCalled());
  });

  it('goes on where it cannot be found out', async () => {
    const { readable, write, close } = source();
    const isAllowed = vi.fn<() => Promise<boolean>>(async () => {
      throw new Error('out of reach');
    });
    const { body, ended } = whileAllowed(readable, isAllowed, 5);
    const reader = body.getReader();
    await until(() => expect(isAllowed.mock.calls.length).toBeGreaterThan(2));
    const read = reader.read();
    write(new Uint8Array([1]));
    expect((await read).done).toBe(false);
    close();
    await reader.read();
    await ended;
  });
});
