import type { UpstreamConfig } from './config.ts';
import type { Dialect } from '../dialect.ts';

/** How a caller's or the operator's key is placed on a request to the upstream. */
export type KeyHeader = 'bearer' | 'x-api-key' | 'x-goog-api-key' | 'api-key';

/**
 * The calls of an upstream that may come as WebSockets: none, sessions on the routes that are known for them, Responses
 * turn by turn besides, or whatever comes, as sessions.
 */
export type Sockets = 'none' | 'sessions' | 'turns' | 'any';

/** One provider endpoint, built in or configured, with every default filled in. */
export interface Upstream {
  readonly id: string;
  /** `/{id}/rest` goes to `{baseUrl}/rest`. No trailing slash. */
  readonly baseUrl: string;
  readonly dialect: Dialect;
  /** Where an injected key goes. */
  readonly keyPlace: KeyHeader;
  /** Path under `baseUrl` where the OpenAI-shaped routes begin, as in `/v1`. Null: it has none. */
  readonly openaiAt: string | null;
  /** Path under `baseUrl` where the Anthropic-shaped routes begin (`…/messages`). Null: it has none. */
  readonly anthropicAt: string | null;
  /** Globs of the models that `/v1/*` sends here. */
  readonly models: readonly string[];
  /** Model names that stand for another one in matching (an Azure deployment, an ARN). */
  readonly aliases: Readonly<Record<string, string>>;
  /** Name of the environment variable with the operator's key, or null: the caller's key passes on. */
  readonly secret: string | null;
  /** Whether calls need a gateway key; `auto`: as the whole configuration says. */
  readonly requiresKey: UpstreamConfig['require_key'];
  /** It takes no key, so that it is sent none, whoever calls. */
  readonly isKeyless: boolean;
  /** Globs of the operations without a slot that calls with the operator's key may use. */
  readonly allow: readonly string[];
  /**
   * Whether a key names its account for good. Where credentials are short-lived OAuth tokens, calls
   * cannot be told apart by account, so the automatic group is not partitioned.
   */
  readonly keyNamesAccount: boolean;
  /** The way to tell the account of a caller's key; `auto`: what is known of the provider. */
  readonly accountBy: UpstreamConfig['account_by'];
  /** Prices that the operator gives, in USD per million tokens, by model. */
  readonly prices: UpstreamConfig['prices'];
  /** Whether its rate-limit headers are believed; `auto`: as its provider is known for. */
  readonly limitHeaders: UpstreamConfig['limit_headers'];
  /** The calls that may come as WebSockets. */
  readonly sockets: Sockets;
  /** Maximum connections for turns that one caller may have open. */
  readonly turnConnectionsEach: number;
  /** Whether OpenAI streams are asked for their usage on behalf of callers who did not ask. */
  readonly injectsUsage: boolean;
  /** Treatment of redirects and addresses outside of the base URL. */
  readonly redirects: UpstreamConfig['redirects'];
  /** Globs of the caller's request headers to forward. Null: all that no other rule drops. */
  readonly requestHeaders: readonly string[] | null;
  /** Name of a service or VPC binding that carries the calls, or null: the public network. */
  readonly via: string | null;
}
