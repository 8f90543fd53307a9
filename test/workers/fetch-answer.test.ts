// Calls that met a connection which their upstream had spoilt, on a runtime that uses such a one again.
import { describe, expect, it } from 'vitest';
import { fetchAnswer, type Fetcher } from '../../src/upstream/transfer/fetch-answer.ts';

const CHAT_URL = 'https://upstream.example/v1/chat/completions';
const NOT_HTTP = new Error('internal error; reference = 0123456789');

/** An upstream whose first connections fail in that way, and which notes the bodies that it was sent. */
class Spoilt implements Fetcher {
  readonly bodies: unknown[] = [];
  readonly #errors: Error[];

  constructor(...errors: Error[]) {
    this.#errors = errors;
  }

  async fetch(_url: string, init: RequestInit): Promise<Response> {
    this.bodies.push(init.body);
    const error = this.#errors.shift();
    if (error !== undefined) throw error;
    return new Response('{}');
  }
}

function sendTo(
  spoilt: Spoilt,
  init: RequestInit = {},
  again: (() => BodyInit | null) | null = fresh,
) {
  return fetchAnswer(spoilt, CHAT_URL, { method: 'POST', body: 'first', ...init }, again);
}

let made = 0;
const fresh = (): BodyInit => `again ${(made += 1)}`;

describe('a spoilt connection', () => {
  it('is met three times at the most, each time with a body of its own', async () => {
    made = 0;
    const spoilt = new Spoilt(NOT_HTTP, NOT_HTTP, NOT_HTTP);
    expect((await sendTo(spoilt)).status).toBe(200);
    expect(spoilt.bodies).toEqual(['first', 'again 1', 'again 2', 'again 3']);
  });

  it('fails the call when it is met a fourth time', async () => {
    const spoilt = new Spoilt(NOT_HTTP, NOT_HTTP, NOT_HTTP, NOT_HTTP);
    await expect(sendTo(spoilt)).rejects.toBe(NOT_HTTP);
    expect(spoilt.bodies).toHaveLength(4);
  });

  it.each([
    ['whose body is gone', {}, null, NOT_HTTP],
    ['that was cut', { signal: AbortSignal.abort() }, fresh, NOT_HTTP],
    ['whose connection broke', {}, fresh, new Error('Network connection lost.')],
  ] as const)('does not send a call again %s', async (_which, init, again, error) => {
    const spoilt = new Spoilt(error);
    await expect(sendTo(spoilt, init, again)).rejects.toBe(error);
    expect(spoilt.bodies).toEqual(['first']);
  });
});
