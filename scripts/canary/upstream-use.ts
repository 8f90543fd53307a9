import * as z from 'zod';
import type { AdminClient } from '../../src/contract/admin/client.ts';
import { bodyOf, type CanaryGroup, type GroupBody } from './groups.ts';
import type { CanaryTarget } from './target.ts';

/** One call of a kind, but for who sends it. */
export interface CallShape {
  readonly path: string;
  readonly body: string;
}

/** An upstream that calls reach in the end, and how they are told from those of others. */
export interface UpstreamUse {
  readonly id: string;
  /** Matching of the group besides its made-up model. */
  readonly match: NonNullable<GroupBody['match']>;
  /** Credentials, and what leads a call into the group. */
  headers(group: CanaryGroup): Record<string, string>;
  /** A stream of some seconds. */
  stream(): CallShape;
  /** The smallest call that generates something. */
  small(): CallShape;
}

/** A run that cannot be carried out as it was asked for. */
export class CheckNotPossible extends Error {
  override readonly name = 'NotPossible';
}

const LONG_PROMPT = 'Count from 1 to 300 in words, one number a line, and say nothing else.';
const SMALL_PROMPT = 'Say ok.';

/** Beginning of the id of a gateway key that nobody but a canary uses. */
const KEY_PREFIX = 'canary';

/** Finds out how calls of a canary reach an upstream, and that no others can match its group. */
export async function upstreamUse(
  admin: AdminClient,
  target: CanaryTarget,
  id: string,
  model: string,
): Promise<UpstreamUse> {
  const upstream = bodyOf(`upstream ${id}`, await admin('getUpstream', { params: { id } }));
  const shapes = shapesOf(upstream, model);
  if (shapes === null) {
    throw new CheckNotPossible(`The canary speaks no dialect of the upstream ${id}.`);
  }
  const base = { 'content-type': 'application/json', ...credentials(target, upstream.dialect) };
  if (upstream.secret === null || target.providerKey !== null) {
    if (target.providerKey === null) {
      throw new CheckNotPossible(
        `The upstream ${id} wants the caller's own key: set PROVIDER_KEY.`,
      );
    }
    // With a key of the caller's own the header is believed, whatever the body says.
    const headers = (group: CanaryGroup) => ({ ...base, 'headgate-model': group.model });
    return { id, match: { upstreams: [id] }, headers, ...shapes };
  }
  const keyId = await gatewayKeyId(target);
  const match = { upstreams: [id], keys: [keyId], models: [model] };
  return { id, match, headers: () => base, ...shapes };
}

const statusSchema = z.object({ key: z.object({ id: z.string() }) });

/** Asks for the id of the gateway key, which has to be one that nobody else uses. */
async function gatewayKeyId({ url, gatewayKey }: CanaryTarget): Promise<string> {
  const wanted = `a gateway key of its own whose id begins with "${KEY_PREFIX}": set HEADGATE_KEY`;
  if (gatewayKey === null) {
    throw new CheckNotPossible(`With the operator's secret a canary wants ${wanted}.`);
  }
  const response = await fetch(`${url}/status`, { headers: { 'headgate-key': gatewayKey } });
  if (!response.ok) throw new CheckNotPossible(`HEADGATE_KEY opens nothing: ${response.status}.`);
  const { id } = statusSchema.parse(await response.json()).key;
  if (!id.startsWith(KEY_PREFIX)) {
    throw new CheckNotPossible(`The key ${id} may be somebody's: ${wanted}.`);
  }
  return id;
}

/** Headers that show who calls, as the dialect wants them. */
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
