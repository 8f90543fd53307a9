import * as z from 'zod';
import { DIALECTS, type Dialect } from '../http.ts';
import { patterns } from './group.ts';
import { text, upstreamPriceSchema } from './limits.ts';

/** Upstreams: as operators configure them, and with all defaults filled in. */

/** Default maximum of connections for turns that one caller may open at an upstream. */
export const TURN_CONNECTIONS_EACH = 64;

/** Ids that would shadow the routes of the Worker. */
export const RESERVED_UPSTREAM_IDS = [
  'v1',
  'admin',
  'status',
  'metrics',
  'healthz',
  'leases',
  'tickets',
  'webhooks',
];

const pathPrefix = z
  .string()
  .regex(/^(\/[^/?#]+)*$/, 'expected a path like /v1, without a trailing slash')
  .nullable()
  .optional();

const accountBy = z.union([
  z.enum(['auto', 'key']),
  z
    .string()
    .regex(
      /^(claim:[^\s]{1,100}|(answer|header):[a-z0-9-]{1,64})$/,
      'expected auto, key, claim:<name>, answer:<header> or header:<name>',
    ),
]);

export const requireKeySchema = z.union([z.literal('auto'), z.boolean()]).default('auto');

const authSchema = z.union([
  z.enum(['passthrough', 'none']),
  z.strictObject({
    secret: z
      .string()
      .regex(
        /^UPSTREAM_[A-Z0-9_]{1,50}$/,
        'expected the name of a secret that begins with UPSTREAM_',
      )
      .describe('Name of the Worker secret, which begins with `UPSTREAM_`.'),
  }),
]);

export const upstreamSchema = z
  .strictObject({
    id: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,31}$/, 'expected 1 to 32 of a-z, 0-9, dash')
      .refine((id) => !RESERVED_UPSTREAM_IDS.includes(id), {
        error: `may not be one of ${RESERVED_UPSTREAM_IDS.join(', ')}`,
      })
      .describe(
        'Id of the upstream: 1 to 32 of a-z, 0-9, dash. Calls to `/{id}/…` go there. It cannot be changed later.',
      ),
    base_url: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe('Base URL, with https. Absent means that of the built-in upstream.'),
    dialect: z
      .enum(DIALECTS)
      .optional()
      .describe('API shape. Absent means that of the built-in upstream, or `openai`.'),
    models: z
      .array(text)
      .max(200)
      .optional()
      .describe(
        'Patterns of the models that `/v1/*` sends here. Absent means those of the built-in upstream, or none.',
      ),
    auth: authSchema
      .default('passthrough')
      .describe(
        "The key that the upstream receives. `passthrough`: the caller's key. `none`: no key, for upstreams that need none. `{ secret }`: a Worker secret, only for callers with a gateway key.",
      ),
    require_key: requireKeySchema.describe(
      'Whether calls to this upstream need a gateway key. `auto`: as `require_key` of the configuration. `true`: always. `false`: calls without one pass with their provider key.',
    ),
    aliases: z
      .record(text, text)
      .default({})
      .describe('Your names for models, as in `{ prod-deployment-7: gpt-4o }`.'),
    allow: patterns.describe(
      "Patterns of operations without a slot (files, batches …) that callers may use with the operator's secret, or at an upstream without a key.",
    ),
    openai_at: pathPrefix.describe(
      'Where the OpenAI-shaped routes begin below `base_url`, as in `/v1`. Absent means by dialect. null if there are none.',
    ),
    anthropic_at: pathPrefix.describe(
      'Where the Anthropic-shaped routes begin below `base_url`. Absent means by dialect. null if there are none.',
    ),
    webhook_secret: z
      .string()
      .regex(/^WEBHOOK_[A-Z0-9_]{1,50}$/, 'expected the name of a secret that begins with WEBHOOK_')
      .nullable()
      .default(null)
      .describe(
        'Name of the Worker secret that signs webhooks of this upstream. It begins with `WEBHOOK_`. Webhooks at `/webhooks/{id}` report the end of runs. null if there are none.',
      ),
    via: z
      .string()
      .regex(/^[A-Z][A-Z0-9_]{0,49}$/, 'expected the name of a binding')
      .nullable()
      .default(null)
      .describe(
        'Name of a service or VPC binding that carries the calls. null means the public network.',
      ),
    prices: z
      .record(
        text.regex(/^([^*]+\*?|\*)$/, 'expected the name of a model, or a prefix followed by *'),
        upstreamPriceSchema,
      )
      .default({})
      .meta({
        description:
          'Prices by model, or by a prefix followed by `*`. They take precedence over the built-in ones.',
        unit: 'USD per million tokens',
      }),
    limit_headers: z
      .enum(['auto', 'use', 'window', 'bucket', 'ignore'])
      .default('auto')
      .describe(
        "Whether Headgate uses the upstream's rate-limit headers, and how its limits refill. `auto`: yes if the provider's headers are known to be reliable. Headers of an unknown upstream must first show a fixed window, or a bucket that refused a call. `use`: always. `ignore`: never. `window`: always, and the limit refills completely at the reset. `bucket`: always, and it refills gradually. Otherwise, the kind of refill is detected from the headers.",
      ),
    account_by: accountBy.default('auto').meta({
      description:
        "What identifies the account of a caller's own key. Keys of one account share an automatic group. `auto`: depends on the provider. `key`: each key is an account. `claim:<name>`: a claim of keys that are JSON Web Tokens. `answer:<header>`: a response header of the upstream. `header:<name>`: a request header, only for callers with a gateway key.",
    }),
    websocket: z
      .enum(['auto', 'session', 'turns', 'off'])
      .default('auto')
      .describe(
        'How WebSockets are handled. `auto`: realtime routes are sessions, which hold their slot from the upgrade to the close. Responses are handled turn by turn if the provider supports it. `turns`: Responses are always handled turn by turn. `session`: every WebSocket is a session. `off`: WebSockets are rejected.',
      ),
    turn_connections_each: z.int().min(1).max(10_000).default(TURN_CONNECTIONS_EACH).meta({
      description:
        'Maximum open connections for turns of Responses per caller and Worker isolate. Further upgrades are rejected with `too_many_connections`.',
      unit: 'connections',
    }),
    inject_usage: z
      .boolean()
      .default(false)
      .describe(
        'Requests the usage of OpenAI chat streams if the caller did not, and removes it from the response.',
      ),
    redirects: z
      .enum(['rewrite', 'pass'])
      .default('rewrite')
      .describe(
        'Redirects, and other addresses in headers, outside of `base_url`. `rewrite`: only addresses below `base_url` reach callers, as addresses of Headgate. Other redirects are answered with 502 `upstream_redirects`. `pass`: all addresses reach callers. Their clients may then send their keys to those hosts.',
      ),
    request_headers: z
      .array(
        text.regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'expected the name of a header, or a glob'),
      )
      .max(200)
      .nullable()
      .default(null)
      .describe(
        "Names or patterns of the request headers that are forwarded where a call uses the operator's secret, or needs no key. `accept`, `content-type`, `content-encoding`, `user-agent`, `anthropic-version` and headers that Headgate sets are always forwarded. null means all except credentials and headers that choose an account or control a gateway.",
      ),
    enabled: z
      .boolean()
      .default(true)
      .describe('If `false`, the upstream does not exist, even if it is built in.'),
  })
  .describe('An upstream as configured.');

export type UpstreamConfig = z.output<typeof upstreamSchema>;

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
