import * as z from 'zod';
import type { AdminClient } from '../../src/admin/client.ts';
import { bodyOf, type CanaryGroup, type GroupBody } from './groups.ts';
import type { CanaryTarget } from './target.ts';

/** A call without its credentials. */
export interface CallShape {
  readonly path: string;
  readonly body: string;
}

/** An upstream that calls reach, and what distinguishes these calls from others. */
export interface UpstreamUse {
  readonly id: string;
  /** Match rules of the group, in addition to its invented model. */
  readonly match: NonNullable<GroupBody['match']>;
  /** Credentials, and headers that assign a call to the group. */
  headers(group: CanaryGroup): Record<string, string>;
  /** A stream that lasts several seconds. */
  stream(): CallShape;
  /** The smallest call that generates something. */
  small(): CallShape;
}

export class CheckNotPossible extends Error {
  override readonly name = 'NotPossible';
}

const LONG_PROMPT = 'Count from 1 to 300 in words, one number a line, and say nothing else.';
const SMALL_PROMPT = 'Say ok.';

/** Prefix of the id of a gateway key that only the canary uses. */
const KEY_PREFIX = 'canary';

/** Returns how calls reach an upstream. Throws if other calls could match the group of the run. */
export async function upstreamUse(
  admin: AdminClient,
  target: CanaryTarget,
  id: string,
  model: string,
): Promise<UpstreamUse> {
  const upstream = bodyOf(
    `Reading upstream \`${id}\``,
    await admin('GET /upstreams/{id}', { params: { id } }),
  );
  const shapes = shapesOf(upstream, model);
  if (shapes === null) {
    throw new CheckNotPossible(
      `The canary does not support the dialect of upstream \`${id}\`. Choose another upstream.`,
    );
  }
  const base = { 'content-type': 'application/json', ...credentials(target, upstream.dialect) };
  if (upstream.secret === null || target.providerKey !== null) {
    if (target.providerKey === null) {
      throw new CheckNotPossible(
        `Upstream \`${id}\` requires the caller's own key. Set PROVIDER_KEY.`,
      );
    }
    // For calls with the caller's own key, the header takes precedence over the model in the body.
    const headers = (group: CanaryGroup) => ({ ...base, 'headgate-model': group.model });
    return { id, match: { upstreams: [id] }, headers, ...shapes };
  }
  const keyId = await gatewayKeyId(target);
  const match = { upstreams: [id], keys: [keyId], models: [model] };
  return { id, match, headers: () => base, ...shapes };
}

const statusSchema = z.object({ key: z.object({ id: z.string() }) });

/** Returns the id of the gateway key. Throws if other clients could use the key. */
async function gatewayKeyId({ url, gatewayKey }: CanaryTarget): Promise<string> {
  const fix = `Set HEADGATE_KEY to a dedicated gateway key whose id begins with \`${KEY_PREFIX}\`.`;
  if (gatewayKey === null) {
    throw new CheckNotPossible(`Calls with the operator's secret require a gateway key. ${fix}`);
  }
  const response = await fetch(`${url}/status`, { headers: { 'headgate-key': gatewayKey } });
  if (!response.ok) {
    throw new CheckNotPossible(`HEADGATE_KEY was rejected with ${response.status}.`);
  }
  const { id } = statusSchema.parse(await response.json()).key;
  if (!id.startsWith(KEY_PREFIX)) {
    throw new CheckNotPossible(`Other clients may use the key \`${id}\`. ${fix}`);
  }
  return id;
}

export function credentials(target: CanaryTarget, dialect: string | null): Record<string, string> {
  const { gatewayKey, providerKey } = target;
  const own = gatewayKey === null ? {} : { 'headgate-key': gatewayKey };
  if (providerKey === null) return own;
  if (dialect === 'anthropic') {
    return { ...own, 'x-api-key': providerKey, 'anthropic-version': '2023-06-01' };
  }
  if (dialect === 'gemini') return { ...own, 'x-goog-api-key': providerKey };
  return { ...own, authorization: `Bearer ${providerKey}` };
}

interface ListedUpstream {
  readonly id: string;
  readonly dialect: string | null;
  readonly openai_at: string | null;
  readonly anthropic_at: string | null;
}

function shapesOf(
  upstream: ListedUpstream,
  model: string,
): Pick<UpstreamUse, 'stream' | 'small'> | null {
  const { id, dialect, openai_at: openaiAt, anthropic_at: anthropicAt } = upstream;
  if (dialect === 'gemini') return geminiShapes(`/${id}/v1beta/models/${model}`);
  const messages = (prompt: string) => [{ role: 'user', content: prompt }];
  if (dialect === 'anthropic') {
    const path = `/${id}${anthropicAt ?? '/v1'}/messages`;
    const body = (prompt: string, more: object) =>
      JSON.stringify({ model, messages: messages(prompt), ...more });
    return {
      stream: () => ({ path, body: body(LONG_PROMPT, { max_tokens: 2_000, stream: true }) }),
      small: () => ({ path, body: body(SMALL_PROMPT, { max_tokens: 16 }) }),
    };
  }
  if (openaiAt === null) return null;
  const path = `/${id}${openaiAt}/chat/completions`;
  const body = (prompt: string, more: object) =>
    JSON.stringify({ model, messages: messages(prompt), ...more });
  return {
    stream: () => ({ path, body: body(LONG_PROMPT, { stream: true }) }),
    small: () => ({ path, body: body(SMALL_PROMPT, {}) }),
  };
}

function geminiShapes(path: string): Pick<UpstreamUse, 'stream' | 'small'> {
  const body = (prompt: string) =>
    JSON.stringify({ contents: [{ role: 'user', parts: [{ text: prompt }] }] });
  return {
    stream: () => ({ path: `${path}:streamGenerateContent?alt=sse`, body: body(LONG_PROMPT) }),
    small: () => ({ path: `${path}:generateContent`, body: body(SMALL_PROMPT) }),
  };
}
