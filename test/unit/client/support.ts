import { afterEach, beforeEach, vi } from 'vitest';
import { createHeadgate, type Headgate } from '../../../packages/client/src/index.ts';
import type { OnUnavailable } from '../../../packages/client/src/gate.ts';
import { ScriptedHeadgate } from './scripted-headgate.ts';

export const KEY = 'hg_key-of-the-tests';

/** A scripted Headgate of so many slots, and a client of it. */
export function stage(
  limit: number,
  onUnavailable: OnUnavailable = 'throw',
): { readonly headgate: ScriptedHeadgate; readonly gate: Headgate } {
  const headgate = new ScriptedHeadgate(limit);
  const { fetch } = headgate;
  const gate = createHeadgate({ url: 'https://gate.example/', key: KEY, fetch, onUnavailable });
  return { headgate, gate };
}

/** Lets the clock of a file's tests stand still, until a test moves it. */
export function stopTheClock(): void {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}

export const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

/** A promise that a test settles when it wants to. */
export function hanging<T = void>() {
  return Promise.withResolvers<T>();
}

/** An error as the SDKs of OpenAI and Anthropic throw it. */
export function sdkError(status: number, headers: Record<string, string> = {}): Error {
  const error = { message: 'Rate limit reached', code: 'rate_limit_exceeded' };
  return Object.assign(new Error(`${status}`), { status, headers: new Headers(headers), error });
}

/** The error with which a promise rejects, whenever that is. */
export function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'it did not fail',
    (error: unknown) => error,
  );
}
