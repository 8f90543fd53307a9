import type { UpstreamConfig } from './upstream-config.ts';
import type { Dialect } from '../dialect.ts';

/** Where a request to the upstream carries its key. */
export type KeyHeader = 'bearer' | 'x-api-key' | 'x-goog-api-key' | 'api-key';

/**
 * Calls of an upstream that may use WebSockets. `sessions`: only the routes known for sessions. `turns`: also
 * Responses, turn by turn. `any`: every WebSocket, as a session.
 */
export type Sockets = 'none' | 'sessions' | 'turns' | 'any';

/** One provider endpoint, built in or configured, with all defaults filled in. */
export interface Upstream {
  readonly id: string;
  /** `/{id}/rest` goes to `{baseUrl}/rest`. No trailing slash. */
  readonly baseUrl: string;
  readonly dialect: Dialect;
  /** Where an injected key goes. */
  readonly keyPlace: KeyHeader;
  /** Path under `baseUrl` where the OpenAI-shaped routes begin, as in `/v1`. null if there are none. */
  readonly openaiAt: string | null;
  /** Path under `baseUrl` where the Anthropic-shaped routes begin (`…/messages`). null if there are none. */
  readonly anthropicAt: string | null;
  /** Patterns of the models that `/v1/*` sends here. */
  readonly models: readonly string[];
  /** Models by the names that stand for them in matching, such as an Azure deployment or an ARN. */
  readonly aliases: Readonly<Record<string, string>>;
  /** Name of the environment variable with the operator's key. null forwards the caller's key. */
  readonly secret: string | null;
  /** Whether calls need a gateway key. `auto` follows the whole configuration. */
  readonly requiresKey: UpstreamConfig['require_key'];
  /** The upstream needs no key, so no caller's key is forwarded. */
  readonly isKeyless: boolean;
  /** Patterns of the operations without a slot that calls with the operator's key may use. */
  readonly allow: readonly string[];
  /**
   * Whether a key always stands for the same account. Short-lived OAuth tokens do not identify accounts, so the
   * automatic group is not partitioned.
   */
  readonly keyNamesAccount: boolean;
  /** What identifies the account of a caller's key. `auto`: what is known about the provider. */
  readonly accountBy: UpstreamConfig['account_by'];
  /** Prices set by the operator, in USD per million tokens, by model. */
  readonly prices: UpstreamConfig['prices'];
  /** Whether its rate-limit headers are used. `auto`: if the provider's headers are known to be reliable. */
  readonly limitHeaders: UpstreamConfig['limit_headers'];
  readonly sockets: Sockets;
  /** Maximum connections for turns that one caller may open. */
  readonly turnConnectionsEach: number;
  /** Whether Headgate requests the usage of OpenAI streams for callers that did not ask for it. */
  readonly injectsUsage: boolean;
  /** How redirects and addresses outside of the base URL are handled. */
  readonly redirects: UpstreamConfig['redirects'];
  /** Patterns of the caller's request headers to forward. null means all that no other rule drops. */
  readonly requestHeaders: readonly string[] | null;
  /** Name of a service or VPC binding that carries the calls. null means the public network. */
  readonly via: string | null;
}
