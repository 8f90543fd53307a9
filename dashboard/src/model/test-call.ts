import { REPORTED_HEADERS } from '../../../src/contract/http.ts';
import type { UpstreamInfo } from './upstream-view.ts';

export interface TestCall {
  /** Path at the origin of this page. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Default models of common upstreams. */
const MODELS: Readonly<Record<string, string>> = {
  openai: 'gpt-4o-mini',
  anthropic: 'claude-haiku-4-5',
  gemini: 'gemini-2.5-flash',
};

type Callable = Pick<UpstreamInfo, 'id' | 'dialect' | 'openai_at' | 'anthropic_at' | 'enabled'>;

export function isCallable({ enabled, openai_at, anthropic_at }: Callable): boolean {
  return enabled && (openai_at !== null || anthropic_at !== null);
}

/** Default model of an upstream. Empty if the user must enter one. */
export function firstModelOf(id: string): string {
  return MODELS[id] ?? '';
}

/**
 * A short test call. The key is sent as a bearer token, which works for gateway keys and for all providers with these
 * routes. An empty key is not sent.
 */
export function testCallOf(upstream: Callable, model: string, key: string): TestCall {
  const hasOwn = upstream.dialect === 'anthropic' && upstream.anthropic_at !== null;
  const isOpenai = upstream.openai_at !== null && !hasOwn;
  const messages = [{ role: 'user', content: 'Say hello in one word.' }];
  const path = isOpenai
    ? `/${upstream.id}${upstream.openai_at}/chat/completions`
    : `/${upstream.id}${upstream.anthropic_at}/messages`;
  return {
    path,
    headers: {
      'content-type': 'application/json',
      ...(isOpenai ? {} : { 'anthropic-version': '2023-06-01' }),
      ...(key === '' ? {} : { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify(isOpenai ? { model, messages } : { model, max_tokens: 16, messages }),
  };
}

const REPORTED: ReadonlySet<string> = new Set([...REPORTED_HEADERS, 'content-type']);

/** Response headers that Headgate sets, and the content type. */
export function reportedHeaders(
  headers: Iterable<readonly [string, string]>,
): (readonly [string, string])[] {
  return [...headers]
    .filter(([name]) => REPORTED.has(name))
    .toSorted(([a], [b]) => a.localeCompare(b));
}
