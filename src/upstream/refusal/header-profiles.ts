import type { HeaderFamilyName } from './header-families.ts';
import { providerOf } from '../../providers/provider-of.ts';

/** Which rate-limit headers an upstream sends, and whether they may hold calls back. */
export interface HeaderProfile {
  readonly family: HeaderFamilyName;
  /** False: they are not read. An operator who knows better sets it. */
  readonly isReliable: boolean;
  /** Where the headers are described or were seen. */
  readonly source: string;
  /** When that was last known to hold, as `YYYY-MM-DD`. */
  readonly date: string;
  readonly note?: string;
}

/**
 * By provider, as `providerOf` names them. Who is not listed sends none (DeepSeek, Gemini, Bedrock,
 * Z.ai, MiniMax, Ollama), or sends what nobody has described (xAI, Moonshot).
 */
export const HEADER_PROFILES: ReadonlyMap<string, HeaderProfile> = new Map<string, HeaderProfile>([
  [
    'anthropic',
    {
      family: 'anthropic',
      isReliable: true,
      source: 'https://platform.claude.com/docs/en/api/rate-limits',
      date: '2026-10-04',
      note: 'The tokens that remain are rounded to thousands. Those of the priority tier and of fast mode are not read: calls beyond them go on at the standard tier.',
    },
  ],
  [
    'azure',
    {
      family: 'azure',
      isReliable: true,
      source: 'https://learn.microsoft.com/answers/5625878',
      date: '2025-11-17',
      note: 'The Responses API has said -1 for what it does not know.',
    },
  ],
  [
    'cerebras',
    {
      family: 'cerebras',
      isReliable: true,
      source: 'https://inference-docs.cerebras.ai/support/rate-limits.md',
      date: '2026-11-20',
    },
  ],
  [
    'digitalocean',
    {
      family: 'digitalocean',
      isReliable: true,
      source: 'https://docs.digitalocean.com',
      date: '2026-07-13',
    },
  ],
  [
    'fireworks',
    {
      family: 'fireworks',
      isReliable: false,
      source: 'https://docs.fireworks.ai/serverless/rate-limits',
      date: '2026-11-20',
      note: 'Its limits follow the load, and calls near them are served.',
    },
  ],
  [
    'groq',
    {
      family: 'groq',
      isReliable: true,
      source: 'https://console.groq.com/docs/rate-limits.md',
      date: '2026-11-20',
    },
  ],
  [
    'mistral',
    {
      family: 'mistral',
      isReliable: true,
      source: 'Eight public clients that read them',
      date: '2026-11-20',
    },
  ],
  [
    'nebius',
    {
      family: 'openai',
      isReliable: false,
      source: 'Public clients that read them',
      date: '2026-11-20',
      note: 'Its limits are dynamic.',
    },
  ],
  [
    'openai',
    {
      family: 'openai',
      isReliable: true,
      source: 'https://developers.openai.com/api/docs/guides/rate-limits',
      date: '2026-10-04',
    },
  ],
  [
    'openrouter',
    {
      family: 'openrouter',
      isReliable: true,
      source: 'https://openrouter.ai/docs/api_reference/limits',
      date: '2026-11-20',
      note: 'On refusals only.',
    },
  ],
  [
    'sambanova',
    {
      family: 'sambanova',
      isReliable: false,
      source: 'Public clients that read them',
      date: '2026-11-20',
      note: 'Sources disagree about the form of the reset.',
    },
  ],
  [
    'together',
    {
      family: 'together',
      isReliable: false,
      source: 'https://docs.together.ai/docs/rate-limits',
      date: '2026-11-20',
      note: 'Per second, and its limits follow the use.',
    },
  ],
]);

/** The profile of an upstream, or null where its headers are not known. */
export function headerProfileOf(upstreamId: string, host: string): HeaderProfile | null {
  return HEADER_PROFILES.get(providerOf(upstreamId, host)) ?? null;
}
