import * as z from 'zod';
import { DIALECTS } from '../dialect.ts';
import { patterns } from './group.ts';
import { text, upstreamPriceSchema } from './limits.ts';

/** Upstreams as operators configure them. */

/** Default maximum of connections for turns that one caller may have open at an upstream. */
export const TURN_CONNECTIONS_EACH = 64;

/** Ids that the Worker's own routes take. */
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

/** When callers need a gateway key. */
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
        'Id of the upstream, 1 to 32 of a-z, 0-9, dash: calls to `/{id}/…` go there. It cannot be changed later.',
      ),
    base_url: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe('Base URL, with https. Absent: that of the built-in one.'),
    dialect: z
      .enum(DIALECTS)
      .optional()
      .describe('API shape. Absent: that of the built-in one, else `openai`.'),
    models: z
      .array(text)
      .max(200)
      .optional()
      .describe(
        'Globs of the models that `/v1/*` sends here. Absent: those of the built-in one, else none.',
      ),
    auth: authSchema
      .default('passthrough')
      .describe(
        'The key that the upstream sees: that of the caller goes on with `passthrough`, and no key at all with `none`, for one that takes none; else a Worker secret, only for callers with a gateway key.',
      ),
    require_key: requireKeySchema.describe(
      'Whether calls to this upstream need a gateway key. `auto`: as `require_key` of the whole configuration says. `true`: always. `false`: a call without one passes with the key of its provider.',
    ),
    aliases: z
      .record(text, text)
      .default({})
      .describe('Your names for models, as in `{ prod-deployment-7: gpt-4o }`.'),
    allow: patterns.describe(
      "Globs of operations without a slot that are open where calls use the operator's secret, or need no key: files, batches …",
    ),
    openai_at: pathPrefix.describe(
      'Where the OpenAI-shaped routes begin below `base_url`, as in `/v1`. Absent: by dialect. Null: it has none.',
    ),
    anthropic_at: pathPrefix.describe(
      'Where the Anthropic-shaped routes begin below `base_url`. Absent: by dialect. Null: it has none.',
    ),
    webhook_secret: z
      .string()
      .regex(/^WEBHOOK_[A-Z0-9_]{1,50}$/, 'expected the name of a secret that begins with WEBHOOK_')
      .nullable()
      .default(null)
      .describe(
        'Name of the Worker secret, which begins with `WEBHOOK_`, by which its webhooks are signed that tell here, at `/webhooks/{id}`, when runs end. Null: it tells nothing.',
      ),
    via: z
      .string()
      .regex(/^[A-Z][A-Z0-9_]{0,49}$/, 'expected the name of a binding')
      .nullable()
      .default(null)
      .describe(
        'Name of a service or VPC binding that carries the calls. Null: the public network.',
      ),
    prices: z
      .record(
        text.regex(/^([^*]+\*?|\*)$/, 'expected a model, or a beginning with one * behind it'),
        upstreamPriceSchema,
      )
      .default({})
      .meta({
        description:
          'Prices by model, or by the beginning of its name with a `*` behind it, before the built-in ones.',
        unit: 'USD per million tokens',
      }),
    limit_headers: z
      .enum(['auto', 'use', 'window', 'bucket', 'ignore'])
      .default('auto')
      .describe(
        "Whether Headgate uses the upstream's rate-limit headers, and how its limits refill. `auto`: yes if the provider's headers are known to be reliable. Headers of an unknown upstream must first show a fixed window, or a bucket that refused a call. `use`: always. `ignore`: never. `window`: always, and the limit refills all at once at the reset. `bucket`: always, and it refills gradually. Except with `window` and `bucket`, the kind of refill is detected from the headers.",
      ),
    account_by: accountBy.default('auto').meta({
      description:
        "What names the account of a caller's own key, so that keys of one account share an automatic group. `auto`: what is known of the provider. `key`: each key is an account. `claim:<name>`: a claim of keys that are JSON Web Tokens. `answer:<header>`: a header of the upstream's answers. `header:<name>`: a header of the call, of callers with a gateway key.",
    }),
    websocket: z
      .enum(['auto', 'session', 'turns', 'off'])
      .default('auto')
      .describe(
        'Calls that come as WebSockets. `auto`: realtime routes as sessions, each of which holds its slot from the upgrade to the close, and Responses turn by turn where the provider is known to speak them so. `turns`: Responses turn by turn at this one too. `session`: whatever comes as a WebSocket is a session. `off`: none.',
      ),
    turn_connections_each: z.int().min(1).max(10_000).default(TURN_CONNECTIONS_EACH).meta({
      description:
        'Maximum connections for turns of Responses that one caller may have open here at once, in each Worker isolate. The next upgrade is refused with `too_many_connections`.',
      unit: 'connections',
    }),
    inject_usage: z
      .boolean()
      .default(false)
      .describe(
        'Asks for the usage of OpenAI chat streams whose callers did not, and takes it out of the answer.',
      ),
    redirects: z
      .enum(['rewrite', 'pass'])
      .default('rewrite')
      .describe(
        'Redirects, and other addresses in headers, outside of `base_url`. `rewrite`: only addresses below `base_url` reach callers, as addresses of Headgate; any other redirect is answered with 502 `upstream_redirects`. `pass`: all addresses reach callers, whose clients may send their keys to those hosts.',
      ),
    request_headers: z
      .array(
        text.regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'expected the name of a header, or a glob'),
      )
      .max(200)
      .nullable()
      .default(null)
      .describe(
        "Names or globs of the request headers that are forwarded where a call uses the operator's secret, or needs no key. `accept`, `content-type`, `content-encoding`, `user-agent`, `anthropic-version` and headers that Headgate sets are always forwarded. Null: all except credentials and headers that choose an account or steer a gateway.",
      ),
    enabled: z
      .boolean()
      .default(true)
      .describe('Switched off, the upstream is gone, a built-in one too.'),
  })
  .describe('An upstream as it is configured.');
