import { REPORTED_HEADERS } from '../../../src/contract/answer-headers.ts';
import type { UpstreamInfo } from './upstream-view.ts';

/** A small call through Headgate. */
export interface TestCall {
  /** Below this origin. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Models to begin with, where an upstream is known for one. */
const MODELS: Readonly<Record<string, string>> = {
  openai: 'gpt-4o-mini',
  anthropic: 'claude-haiku-4-5',
  gemini: 'gemini-2.5-flash',
};

type Callable = Pick<UpstreamInfo, 'id' | 'dialect' | 'openai_at' | 'anthropic_at' | 'enabled'>;

/** Whether there is a route of a shape that is known. */
export function isCallable({ enabled, openai_at, anthropic_at }: Callable): boolean {
  return enabled && (openai_at !== null || anthropic_at !== null);
}

/** The model that a call to an upstream begins with; empty: it must be said. */
export function firstModelOf(id: string): string {
  return MODELS[id] ?? '';
}

/**
 * The call that asks an upstream for a word. The key goes as a bearer token, which gateway keys and the
 * keys of every provider with these routes may; empty: none is sent.
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

/** The headers of an answer that say what Headgate did. */
export function reportedHeaders(
  headers: Iterable<readonly [string, string]>,
): (readonly [string, string])[] {
  return [...headers]
    .filter(([name]) => REPORTED.has(name))
    .toSorted(([a], [b]) => a.localeCompare(b));
}
