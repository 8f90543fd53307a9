import {
  configSchema,
  type Config,
  type ConfigInput,
} from '../../../src/contract/config/config.ts';
import type { Upstream } from '../../../src/contract/config/upstream.ts';
import type { RoutedCall } from '../../../src/routing/placement.ts';

/** An OpenAI-shaped upstream, with what a test needs otherwise. */
export function anUpstream(id: string, more: Partial<Upstream> = {}): Upstream {
  return {
    id,
    baseUrl: `https://api.${id}.example`,
    dialect: 'openai',
    keyPlace: 'bearer',
    openaiAt: '/v1',
    anthropicAt: null,
    models: [],
    aliases: {},
    secret: null,
    isKeyless: false,
    requiresKey: 'auto',
    allow: [],
    keyNamesAccount: true,
    accountBy: 'auto',
    prices: {},
    limitHeaders: 'auto',
    injectsUsage: false,
    turnConnectionsEach: 64,
    redirects: 'rewrite',
    requestHeaders: null,
    sockets: 'sessions',
    via: null,
    ...more,
  };
}

/** Upstreams by id, as `resolveUpstreams` gives them. */
export function byId(...upstreams: Upstream[]): ReadonlyMap<string, Upstream> {
  return new Map(upstreams.map((upstream) => [upstream.id, upstream]));
}

/** A configuration as operators write it, with its defaults filled in. */
export function aConfig(input: ConfigInput): Config {
  return configSchema.parse(input);
}

/** A chat call of one caller, with what a test needs otherwise. */
export function aCall(upstream: Upstream, more: Partial<RoutedCall> = {}): RoutedCall {
  return {
    upstream,
    operation: 'chat',
    model: 'gpt-4o',
    isOwnKey: true,
    caller: 'fp-caller',
    keyIds: ['fp-caller'],
    method: 'POST',
    path: null,
    keyFingerprint: 'fp-caller',
    account: null,
    header: () => null,
    ...more,
  };
}
